import { connect } from "@edgelatch/edgelatch";

const name: number = connect({ url: "http://127.0.0.1:1", token: "token" }).lock("job").name;
console.log(name);
