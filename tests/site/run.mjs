/**
 * Tests the documentation site: its links, and its pages in browsers. A full run adds Firefox and
 * takes pictures.
 *
 * Environment: EDGELATCH_SITE (the folder of the build), CHROMIUM and FIREFOX (the browsers'
 * programs; without FIREFOX only Chromium is used), EDGELATCH_SCREENSHOTS (a folder for the
 * pictures, if they are wanted), EDGELATCH_EXTENT.
 */

import "./links.mjs";
import "./browsers.mjs";
