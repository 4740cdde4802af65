/**
 * Tests `edgelatch/log` and `edgelatch/opentelemetry` of the packed package on a real gateway, with
 * the real SDK of OpenTelemetry, and runs the programs of docs/observability.md.
 *
 * Environment: EDGELATCH_TARBALL, EDGELATCH_TEST_URL, EDGELATCH_TEST_TOKEN and EDGELATCH_TOOLS as
 * for `tests/runtimes/run.mjs`.
 */

import { after, describe } from "node:test";

import { removeProjects } from "../runtimes/project.mjs";
import { logTests } from "./log.mjs";
import { openTelemetryTests } from "./opentelemetry.mjs";
import { pageTests } from "./pages.mjs";

after(removeProjects);

describe("edgelatch/log", logTests);
describe("edgelatch/opentelemetry", openTelemetryTests);
describe("docs/observability.md", pageTests);
