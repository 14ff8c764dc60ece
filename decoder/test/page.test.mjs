/**
 * Tests the built page in Chromium by typing and clicking like a person. The page is target/decoder.html, or the file that PAGE
 * names.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { DEFAULT_LAYOUT } from "../snowflake.mjs";
import { toUuid } from "../uuid.mjs";
import { open as openIn, page, start } from "./opened.mjs";
import { KEYS } from "./webdriver.mjs";

const { layouts, ids } = JSON.parse(readFileSync(new URL("../../tests/vectors.json", import.meta.url), "utf8"));

/** How many vectors of each named layout are tried. */
const EACH = process.env.THOROUGH === "1" ? 8 : 2;

let browser;
before(async () => (browser = await start()));
after(() => browser?.stop());

const open = (fragment) => openIn(browser, fragment);

/** Returns what the page shows for an ID. */
function shown() {
    return browser.run(`
        const text = (selector) => document.querySelector(selector)?.textContent ?? null;
        const form = (name) => text('#forms [data-form="' + name + '"]');
        const visible = !document.getElementById("result").hidden;
        return visible && {
            id: form("Decimal"), hexadecimal: form("Hexadecimal"), text: form("Text"), uuid: form("UUID"), created_at: text("#utc"),
            datacenter_id: text("#part-datacenter"), worker_id: text("#part-worker"), sequence: text("#part-sequence"),
            layout: text("#part-layout"), bits: text("#bit-map"),
        };`);
}

/** Returns the table of named layouts: the cells of each row by the name of the layout. */
async function table() {
    const rows = await browser.run(`
        const rows = [...document.querySelectorAll("#layouts tbody tr")];
        return rows.map((row) => [row.dataset.layout, [...row.cells].slice(1).map((cell) => cell.textContent)]);`);
    return Object.fromEntries(rows);
}

function made() {
    return browser.run(`
        const codes = document.querySelectorAll("#made:not([hidden]) [data-form]");
        return Object.fromEntries([...codes].map((code) => [code.dataset.form, code.textContent]));`);
}

/** Returns the text of a part, or null if the layout does not have the part. */
const part = (number) => (number === null ? null : String(number));

function expected({ id, text, created_at, datacenter_id, worker_id, sequence, layout }) {
    return {
        id,
        hexadecimal: `0x${BigInt(id).toString(16)}`,
        text,
        uuid: toUuid(BigInt(id)),
        created_at,
        datacenter_id: part(datacenter_id),
        worker_id: part(worker_id),
        sequence: part(sequence),
        layout,
        bits: BigInt(id).toString(2).padStart(64, "0"),
    };
}

const published = ids.find(({ layout, id }) => layout === "twitter" && id === "1541815603606036480");

test("an ID that is typed is shown, in each of its forms", async () => {
    await open();
    assert.equal(await shown(), false);
    const { id, text } = published;
    for (const typed of [id, `0x${BigInt(id).toString(16)}`, text, text.toLowerCase(), `'${id}'`]) {
        await browser.type("#id", typed);
        assert.deepEqual(await shown(), expected(published), typed);
    }
    await browser.click(".example:nth-of-type(4)");
    assert.deepEqual(await shown(), expected(published));
    await browser.click(".example:nth-of-type(2)");
    assert.equal((await shown()).id, "103270115826048975");
    assert.match(await browser.text("#layout option:first-child"), /^Suggested: mastodon$/);
});

test("an ID above 2^53 is exact to its last digit", async () => {
    await open();
    for (const id of ["9007199254740993", "1541815603606036481", "9223372036854775807"]) {
        await browser.paste("#id", id);
        await browser.select("#layout", "twitter");
        const found = await shown();
        assert.equal(found.id, id, `the page shows ${found.id} instead of ${id}`);
        assert.equal(BigInt(`0b${found.bits}`), BigInt(id));
    }
});

test("a URL, digits with separators, and a UUID are understood", async () => {
    await open();
    const { id } = published;
    for (const pasted of ["1,541,815,603,606,036,480", "1541 815603 606036480", "1_541_815_603_606_036_480", toUuid(BigInt(id))]) {
        await browser.paste("#id", pasted);
        assert.deepEqual(await shown(), expected(published), pasted);
        assert.equal(await browser.text("#id-note"), "");
    }
    for (const url of [`https://shop.example/orders/${id}`, `https://shop.example/orders?page=2&id=${id}`]) {
        await browser.paste("#id", url);
        assert.deepEqual(await shown(), expected(published), url);
        assert.equal(await browser.text("#id-note"), `Read ${id} from the URL.`);
    }
    await browser.paste("#id", `https://shop.example/customers/175928847299117063/orders/${id}`);
    assert.equal(await browser.text("#id-note"), `Read ${id} from the URL. The URL also contains 175928847299117063.`);
    const link = await browser.run("return location.href");
    await browser.go("about:blank");
    await browser.go(link);
    assert.deepEqual(await shown(), expected(published));
});

test("the largest bigint and other markers suggest no layout", async () => {
    await open();
    for (const id of ["9223372036854775807", "4611686018427387904", "9000000000000000000"]) {
        await browser.paste("#id", id);
        assert.match(await browser.waitFor("#id-note", /is a limit of integers or a round number/), /The page shows it in layout twitter/);
        assert.equal(await browser.text("#layout option:first-child"), "Suggested: none");
        const verdicts = Object.values(await table()).map(([verdict]) => verdict);
        assert.deepEqual(verdicts.filter((verdict) => !verdict.startsWith("no: ")), [], id);
    }
});

test("every named layout reads its vectors", async () => {
    await open();
    for (const { name } of layouts) {
        await browser.select("#layout", name);
        for (const vector of ids.filter(({ layout }) => layout === name).slice(-EACH)) {
            await browser.run(
                `location.hash = arguments[0];
                return new Promise((done) => addEventListener("hashchange", () => done(), { once: true }));`,
                new URLSearchParams({ id: vector.id, layout: name }).toString(),
            );
            assert.deepEqual(await shown(), expected(vector));
            const parts = [vector.datacenter_id, vector.worker_id, vector.sequence].map((value) => part(value) ?? "–");
            const rows = await table();
            assert.deepEqual(rows[name].slice(1), [vector.created_at, ...parts]);
            assert.deepEqual(Object.keys(rows), layouts.map((layout) => layout.name));
        }
    }
});

test("a row of the table selects its layout", async () => {
    await open();
    await browser.paste("#id", published.id);
    await browser.click("#layouts tr[data-layout=discord] button");
    assert.equal((await shown()).layout, "discord");
    assert.equal(await browser.run("return document.querySelector('#layouts [aria-current=true]').dataset.layout"), "discord");
    assert.match(await browser.run("return location.hash"), /layout=discord/);
});

test("the likely layout is suggested", async () => {
    await open();
    for (const [id, name] of [
        ["1541815603606036480", "twitter"],
        ["3870172288071432645", "instagram"],
        ["103270115826048975", "mastodon"],
        ["136169504773242881", "pgedge"],
        ["175928847299117063", "discord"],
    ]) {
        await browser.paste("#id", id);
        assert.equal((await shown()).layout, name);
        assert.equal((await table())[name][0], "suggested");
    }
    await browser.paste("#id", "12345");
    assert.match(await browser.waitFor("#id-note", /No named layout gives a plausible time/), /layout twitter/);
    assert.equal((await table()).twitter[0], "no: before the first IDs");
});

test("bits and an epoch of one's own are used", async () => {
    const own = ids.filter(({ layout }) => layout.includes(":"));
    await open();
    await browser.select("#layout", "own");
    for (const vector of own.filter((_, at) => at % 80 === 79)) {
        await browser.paste("#id", vector.id);
        await browser.paste("#bits", vector.layout);
        await browser.paste("#epoch", vector.epoch);
        assert.deepEqual(await shown(), expected(vector));
    }
});

test("the parts of an ID make the same ID", async () => {
    await open();
    const others = ids.filter(({ layout, id }) => id.length > 17 && layout !== DEFAULT_LAYOUT).filter((_, at) => at % 29 === 0);
    for (const vector of [published, ...others]) {
        const query = { id: vector.id, layout: "own", bits: vector.layout, epoch: vector.epoch };
        if (!vector.layout.includes(":")) Object.assign(query, { layout: vector.layout, bits: "", epoch: "" });
        await open(`#${new URLSearchParams(query)}`);
        await browser.click("#reuse");
        const { ID, Text, "First ID of the tick": min, "Last ID of the tick": max, "Time (UTC)": time } = await made();
        const { id, text, min_id, max_id, created_at } = vector;
        assert.deepEqual([ID, Text, min, max, time], [id, text, min_id, max_id, created_at]);
    }
});

test("a time, a worker ID and a sequence that are typed make an ID", async () => {
    await open();
    await browser.type("#at", published.created_at.replace("T", " ").replace("16:07", "18:07").replace("Z", "+02:00"));
    await browser.type("#worker", String(published.worker_id));
    await browser.type("#sequence", "0");
    assert.equal((await made()).ID, published.id);
    const sql = await browser.text("#sql");
    const bounds = `('2022-06-28 16:07:40.105Z', 'twitter')`;
    assert.ok(sql.includes(`snowflake_min_id${bounds}`) && sql.includes(`snowflake_max_id${bounds}`), sql);
    assert.ok(sql.includes("snowflake_between(id, '2022-06-28 16:07:40.105Z', '2022-06-28 16:07:40.106Z')"), sql);
    await browser.select("#make-layout", "discord");
    await browser.type("#datacenter", "31");
    await browser.type("#worker", "32");
    await browser.waitFor("#make-error", /Worker ID 32 does not fit layout 41:5:5:12: it takes 0 to 31/i);
    assert.deepEqual(await made(), {});
    await browser.type("#worker", "31");
    assert.match(await browser.text("#sql"), /worker_id => 31, sequence => 0, datacenter_id => 31, layout => 'discord'/);
    await browser.type("#at", "2014-12-31T23:59:59Z");
    await browser.waitFor("#make-error", /2014-12-31T23:59:59.000Z is before the epoch/);
    await browser.click("#now");
    assert.match((await made())["Time (UTC)"], /^20/);
});

test("a link opens the same state", async () => {
    await open();
    await browser.paste("#id", "180363646902239241");
    await browser.select("#layout", "own");
    await browser.paste("#bits", "29:21:13@1s");
    await browser.paste("#epoch", "2016-09-20T00:00:00+08:00");
    await browser.select("#make-layout", "own");
    await browser.paste("#make-bits", "41:4:8");
    await browser.paste("#at", "2026-01-31T12:00:00Z");
    await browser.paste("#worker", "15");
    await browser.paste("#sequence", "255");
    const state = async () => [
        await shown(),
        await made(),
        await browser.run("return [...document.querySelectorAll('input, select')].map(({ id, value }) => id + '=' + value)"),
    ];
    const link = await browser.run("return location.href");
    const before = await state();
    assert.equal(before[0].created_at, "2017-01-19T04:15:46.000Z");
    await browser.go("about:blank");
    await browser.go(link);
    assert.deepEqual(await state(), before);
    assert.equal(await browser.run("return location.href"), link);
    // The part of the address that a browser sends contains nothing that was entered.
    assert.equal(link.split("#")[0], page);
});

test("a link with anything in it opens", async () => {
    const strange = ["#", "#%", "#id=%00&layout=none&make=none", "#id=1&layout=own&bits=%3Cimg%3E&at=x&worker=-1", "#at=2026-01-31"];
    for (const fragment of strange) {
        await open(fragment);
        assert.equal(await browser.text("h1"), "Snowflake ID decoder");
        assert.equal(await browser.run("return document.querySelectorAll('img').length"), 0);
    }
    assert.match(await browser.text("#make-error"), /has no time zone/);
    assert.deepEqual(severe(await browser.log("browser")), []);
});

test("bad input shows a message", async () => {
    await open();
    for (const [typed, message] of [
        ["-1", /-1 is not an ID: it is negative/],
        ["9223372036854775808", /9223372036854775808 is not an ID: the largest is 9223372036854775807/],
        ["0x", /is not a hexadecimal number/],
        ["1e18", /write the digits only/],
        ["1ASD13XH1F80", /12 characters, not 13/],
        ["1ASD13XH1F80U", /character 13 is not a digit of base 32/],
        ["<img src=x onerror=alert(1)>", /is not the text of an ID/],
    ]) {
        await browser.paste("#id", typed);
        await browser.waitFor("#id-error", message);
        assert.equal(await shown(), false, typed);
        assert.equal(await browser.run("return document.getElementById('id').getAttribute('aria-invalid')"), "true");
    }
    await browser.paste("#id", "1541815603606036480");
    await browser.waitFor("#id-error", /^$/);
    await browser.select("#layout", "own");
    await browser.paste("#bits", "41:10:13");
    await browser.waitFor("#id-error", /it has 64 bits, and an ID has at most 63/);
    assert.deepEqual(await browser.run("return [...document.querySelectorAll('[aria-invalid]')].map(({ id }) => id)"), ["bits"]);
    await browser.paste("#bits", "41:4:8");
    await browser.waitFor("#id-error", /1541815603606036480 is not an ID of layout 41:4:8/);
    assert.deepEqual(severe(await browser.log("browser")), []);
});

test("a form of two meanings is pointed out", async () => {
    await open();
    await browser.paste("#id", "1000000000000");
    await browser.waitFor("#id-note", /Read as a decimal number. 13 characters of text of this form would be ID 1152921504606846976/);
    await browser.paste("#id", "0X12345678901");
    await browser.waitFor("#id-note", /Read as text. A number of this form would be ID 1250999896321/);
});

test("the keyboard reaches every control, and each has a label", async () => {
    await open(`#id=${published.id}`);
    const controls = "input, select, button, summary";
    const unnamed = await browser.run(`
        const visible = [...document.querySelectorAll("${controls}")].filter((control) => control.checkVisibility());
        return visible.filter((control) => !(control.labels?.length || control.textContent.trim())).map((control) => control.id);`);
    assert.deepEqual(unnamed, []);
    await browser.run(`
        window.seen = [];
        document.addEventListener("focusin", ({ target }) => seen.push(target.id || target.textContent));
        document.getElementById("id").focus();`);
    await browser.press(KEYS.tab, 60);
    const seen = new Set(await browser.run("return seen"));
    const reached = ["layout", "reuse", "link", "twitter", "at", "now", "make-layout", "worker", "sequence"];
    assert.deepEqual(reached.filter((id) => !seen.has(id)), []);
});

test("the page requests nothing, and may request nothing", async () => {
    await browser.log("performance");
    await open(`#id=${published.id}`);
    await browser.click("#reuse");
    await browser.click("#link");
    assert.equal(await browser.run("return performance.getEntriesByType('resource').length"), 0);
    const messages = (await browser.log("performance")).map(({ message }) => JSON.parse(message).message);
    const all = messages.filter(({ method }) => method === "Network.requestWillBeSent").map(({ params }) => params);
    // The browser itself makes requests for its own pages.
    const requested = all.filter(({ documentURL }) => documentURL.startsWith(page)).map(({ request }) => request.url);
    assert.deepEqual(requested.filter((url) => !url.startsWith("data:")), [page]);

    const blocked = await browser.run(`
        const blocked = [];
        document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) => blocked.push(effectiveDirective));
        const add = (tag, properties) => document.body.append(Object.assign(document.createElement(tag), properties));
        add("img", { src: "http://127.0.0.1:9/pixel" });
        add("iframe", { src: "http://127.0.0.1:9/frame" });
        add("script", { textContent: "window.foreign = true" });
        add("style", { textContent: "body { color: red }" });
        return fetch("http://127.0.0.1:9/").then(() => ["fetched"], () => new Promise((done) => setTimeout(() => done(blocked), 100)));`);
    assert.deepEqual(blocked.sort(), ["connect-src", "frame-src", "img-src", "script-src-elem", "style-src-elem"]);
    assert.equal(await browser.run("return window.foreign ?? null"), null);
});

/** Returns the errors in a browser's log. */
function severe(entries) {
    return entries.filter(({ level }) => level === "SEVERE").map(({ message }) => message);
}
