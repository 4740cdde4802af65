import { report } from "../../report.js";

export const POST = report;
