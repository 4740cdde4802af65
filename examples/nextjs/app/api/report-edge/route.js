import { report } from "../../report.js";

export const runtime = "edge";

export const POST = report;
