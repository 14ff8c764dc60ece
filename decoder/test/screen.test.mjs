/** Tests how the built page looks in Chromium on the screens of telephones and desktops, and in light and dark mode. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { open, start } from "./opened.mjs";

const ID = "1541815603606036480";

let browser;
before(async () => (browser = await start()));
after(() => browser?.stop());

test("a phone shows the page without scrolling sideways", async () => {
    const metrics = { width: 390, height: 844, deviceScaleFactor: 2, mobile: true };
    await browser.command("Emulation.setDeviceMetricsOverride", metrics);
    const widest = "#id=9223372036854775807&layout=own&bits=62:0:1@1s";
    for (const fragment of ["", `#id=${ID}&at=2026-01-31T12:00:00Z`, widest, `#id=${"9".repeat(80)}`]) {
        await open(browser, fragment);
        const [width, visible] = await browser.run("return [document.documentElement.scrollWidth, innerWidth]");
        assert.deepEqual([width, visible], [390, 390], fragment);
    }
    await browser.command("Emulation.clearDeviceMetricsOverride", {});
});

test("a table that is wider than the screen tells the person to scroll it", async () => {
    const state = () => browser.run(`
        const area = document.querySelector(".scroll"), hint = document.querySelector(".scroll-hint");
        // Both animation frames and the observer of sizes have run when the second frame begins.
        const frame = () => new Promise((done) => requestAnimationFrame(done));
        return frame().then(frame).then(() => [area.scrollWidth > area.clientWidth, hint.checkVisibility(), area.matches(".more")]);`);
    await open(browser, `#id=${ID}`);
    assert.deepEqual(await state(), [false, false, false]);
    await browser.command("Emulation.setDeviceMetricsOverride", { width: 390, height: 844, deviceScaleFactor: 2, mobile: true });
    assert.deepEqual(await state(), [true, true, true]);
    await open(browser, `#id=${ID}`);
    assert.deepEqual(await state(), [true, true, true]);
    assert.match(await browser.text(".scroll-hint"), /Scroll it sideways to see all columns/);
    // The edge fades out only while there is more to see, and the names of the layouts stay visible.
    await browser.run("document.querySelector('.scroll').scrollLeft = 10_000");
    assert.deepEqual(await state(), [true, true, false]);
    assert.ok(await browser.run("return document.querySelector('#layouts tbody th').getBoundingClientRect().left >= 0"));
    await browser.command("Emulation.clearDeviceMetricsOverride", {});
});

test("colours follow the setting for dark pages, and contrast with what is behind them", async () => {
    for (const scheme of ["light", "dark"]) {
        await browser.command("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
        await open(browser, `#id=${ID}`);
        const ground = await browser.run("return getComputedStyle(document.body).backgroundColor");
        assert.equal(luminance(ground) < 0.2, scheme === "dark", ground);
        const pairs = await browser.run(`
            const behind = (element) => {
                const colour = getComputedStyle(element).backgroundColor;
                return colour === "rgba(0, 0, 0, 0)" && element.parentElement ? behind(element.parentElement) : colour;
            };
            const shown = [...document.querySelectorAll("body *")].filter((element) =>
                element.checkVisibility() && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
            return shown.map((element) => [getComputedStyle(element).color, behind(element), element.textContent]);`);
        assert.ok(pairs.length > 100, `${pairs.length} texts`);
        for (const [colour, under, text] of pairs) {
            const [dark, light] = [luminance(colour), luminance(under)].sort((a, b) => a - b);
            const contrast = (light + 0.05) / (dark + 0.05);
            assert.ok(contrast >= 4.5, `${scheme}: "${text}" has a contrast of ${contrast.toFixed(2)}`);
        }
    }
    await browser.command("Emulation.setEmulatedMedia", { features: [] });
});

/** Returns the relative luminance of a colour, as the guidelines for accessible pages (WCAG) define it. */
function luminance(colour) {
    const [red, green, blue] = /\((\d+), (\d+), (\d+)/
        .exec(colour)
        .slice(1)
        .map((value) => value / 255)
        .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
