/** Shows an ID: its time, its parts, its bits, its other forms, and how every named layout reads it. */

import { $, copyButton, element } from "./dom.mjs";
import { LAYOUTS, fields, toIso } from "./snowflake.mjs";
import { toUuid } from "./uuid.mjs";

const NAMES = { timestamp: "Timestamp", datacenter: "Datacenter ID", worker: "Worker ID", sequence: "Sequence" };

const VERDICTS = {
    likely: "suggested",
    possible: "possible",
    early: "no: before the first IDs",
    future: "no: in the future",
    large: "no: the parts are too large",
    marker: "no: a limit or a round number",
    invalid: "no: above the last ID",
};

/** The last instant of JavaScript's Date, in milliseconds since 1970. */
const LAST_DATE = 8_640_000_000_000_000n;

/**
 * @param {{ shape: import("./snowflake.mjs").Format, decoded: import("./snowflake.mjs").Decoded }} shown
 * @param {import("./suggest.mjs").Reading[]} readings
 * @param {(name: string) => void} choose Called with the layout that is selected in the table.
 */
export function showId({ shape, decoded }, readings, choose) {
    $("utc").textContent = decoded.createdAt;
    $("utc").setAttribute("datetime", decoded.createdAt);
    $("ago").textContent = relative(decoded.unixMs);
    $("local").textContent = local(decoded.unixMs);
    const named = LAYOUTS.find(({ name }) => name === shape.name);
    const values = { datacenter: decoded.datacenterId, worker: decoded.workerId, sequence: decoded.sequence };
    const meanings = { datacenter: named?.datacenterId, worker: named?.workerId, sequence: named?.sequence };
    const epoch = `epoch ${toIso(shape.epochMs)}`;
    const parts = ["datacenter", "worker", "sequence"].filter((part) => values[part] !== null);
    $("parts").replaceChildren(
        ...parts.map((part) => {
            const meaning = meanings[part] ? [element("small", {}, meanings[part])] : [];
            return tile(part, NAMES[part], String(values[part]), ...meaning);
        }),
        tile("layout", "Layout", shape.name ?? shape.bits, element("small", {}, shape.name ? `${shape.bits}, ${epoch}` : epoch)),
    );
    drawBits(decoded.id, shape, { timestamp: decoded.tick, ...values });
    const forms = [
        ["Decimal", String(decoded.id)],
        ["Hexadecimal", `0x${decoded.id.toString(16)}`],
        ["Text", decoded.text],
        ["UUID", toUuid(decoded.id)],
    ];
    $("forms").replaceChildren(
        ...forms.flatMap(([name, value]) => [
            element("dt", {}, name),
            element("dd", {}, element("code", { "data-form": name }, value), copyButton(value, name)),
        ]),
    );
    $("layouts").tBodies[0].replaceChildren(...readings.map((reading) => row(reading, verdict(reading, readings), shape.name, choose)));
}

/** Tells the person to scroll a table that is wider than the screen, now and whenever its width changes. */
export function watchScroll(area, hint) {
    const measure = () => {
        const hidden = area.scrollWidth - area.clientWidth;
        hint.hidden = hidden <= 1;
        area.classList.toggle("more", hidden - area.scrollLeft > 1);
    };
    const sizes = new ResizeObserver(measure);
    sizes.observe(area);
    sizes.observe(area.firstElementChild);
    area.addEventListener("scroll", measure, { passive: true });
}

function tile(part, name, value, ...small) {
    return element("div", { class: part }, element("dt", {}, name), element("dd", { id: `part-${part}` }, value), ...small);
}

/** Draws the 64 bits, one cell for each bit, and a legend with the bits and the value of each field. */
function drawBits(id, shape, values) {
    const all = fields(shape);
    const [top] = all;
    const unused = 64 - top.bits - top.shift;
    const kinds = [...Array(unused).fill("unused"), ...all.flatMap(({ field, bits }) => Array(bits).fill(field))];
    const digits = id.toString(2).padStart(64, "0");
    $("bit-map").replaceChildren(
        ...kinds.map((kind, at) => {
            const first = at === 0 || kinds[at - 1] !== kind;
            return element("span", { class: `bit ${kind}${first ? " first" : ""}`, title: `bit ${63 - at}` }, digits[at]);
        }),
    );
    const tick = { 1: "1 ms", 10: "10 ms", 1000: "1 s" }[shape.tickMs];
    const lines = all.map(({ field, bits, shift }) => {
        const place = bits === 1 ? `bit ${shift}` : `bits ${bits + shift - 1} to ${shift}`;
        const unit = field === "timestamp" ? ` ticks of ${tick}` : ` of ${2n ** BigInt(bits) - 1n}`;
        return { field, text: `${NAMES[field]}: ${values[field]}${unit}, ${place}` };
    });
    lines.unshift({ field: "unused", text: unused === 1 ? "Sign: bit 63" : `Sign and unused: bits 63 to ${64 - unused}` });
    $("bit-map").setAttribute("aria-label", lines.map(({ text }) => text).join("; "));
    $("legend").replaceChildren(...lines.map(({ field, text }) => element("li", {}, element("span", { class: `swatch ${field}` }), text)));
}

function verdict(reading, readings) {
    return VERDICTS[reading.verdict] ?? `same as ${readings.find(({ verdict }) => verdict === "likely").name}`;
}

function row({ name, decoded, verdict }, said, selected, choose) {
    const button = element("button", { type: "button", class: "link", title: `Read the ID in layout ${name}` }, name);
    button.addEventListener("click", () => choose(name));
    const cells = decoded ? [decoded.createdAt, decoded.datacenterId, decoded.workerId, decoded.sequence] : ["", "", "", ""];
    return element(
        "tr",
        { "data-layout": name, class: verdict, "aria-current": name === selected ? "true" : false },
        element("th", { scope: "row" }, button),
        element("td", { class: "verdict" }, said),
        ...cells.map((value) => element("td", {}, value === null ? "–" : String(value))),
    );
}

/** Returns how long ago an instant was, or how far it is in the future. */
function relative(unixMs) {
    if (unixMs > LAST_DATE) return "";
    const seconds = (Number(unixMs) - Date.now()) / 1_000;
    const units = [["year", 31_556_952], ["month", 2_629_746], ["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]];
    const [unit, length] = units.find(([, length]) => Math.abs(seconds) >= length) ?? units.at(-1);
    return new Intl.RelativeTimeFormat("en", { numeric: "always" }).format(Math.trunc(seconds / length), unit);
}

/** Returns an instant in ISO 8601, in the browser's time zone. */
function local(unixMs) {
    if (unixMs > LAST_DATE - 86_400_000n) return "";
    const offset = -new Date(Number(unixMs)).getTimezoneOffset();
    const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60].map((part) => String(part).padStart(2, "0"));
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const time = toIso(unixMs + BigInt(Math.round(offset)) * 60_000n).slice(0, -1);
    return `${time}${offset < 0 ? "-" : "+"}${hours}:${minutes} (${zone}, local time)`;
}
