/** The suite `tools`: the tests of all scripts in this folder. */

import "./bench/report.test.mjs";
import "./glue.test.mjs";
import "./smoke.test.mjs";
import "./timeline/draw.test.mjs";
