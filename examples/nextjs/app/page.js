"use client";

import { useState } from "react";

export default function Page() {
  const [result, setResult] = useState("");
  const write = async (route) => setResult(await (await fetch(`/api/${route}`, { method: "POST" })).text());
  return (
    <main>
      <button onClick={() => write("report")}>Write the report in Node</button>
      <button onClick={() => write("report-edge")}>Write it at the edge</button>
      <p>{result}</p>
    </main>
  );
}
