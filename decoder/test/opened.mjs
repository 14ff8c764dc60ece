/** Opens the built page in Chromium. The page is target/decoder.html, or the file that PAGE names. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";

import { Browser } from "./webdriver.mjs";

const PAGE = process.env.PAGE ?? new URL("../../target/decoder.html", import.meta.url).pathname;

/** The URL of the page, without a fragment. */
export const page = pathToFileURL(PAGE).href;

/** Starts a browser for the page. */
export function start() {
    assert.ok(existsSync(PAGE), `${PAGE} is missing: make decoder builds it`);
    return Browser.start();
}

/** Opens the page without a fragment, or with this fragment. */
export async function open(browser, fragment = "") {
    await browser.go("about:blank");
    await browser.go(page + fragment);
}
