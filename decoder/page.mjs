/** The page: it reads an ID, makes an ID, and keeps what was entered in the fragment of the address, which no browser sends. */

import { $, copy, copyButton, element } from "./dom.mjs";
import { readId } from "./read.mjs";
import { showId, watchScroll } from "./show.mjs";
import { DEFAULT_LAYOUT, LAYOUTS, decode, encode, format, range, toIso, toUnixMs } from "./snowflake.mjs";
import { statements } from "./sql.mjs";
import { isMarker, readings } from "./suggest.mjs";
import { toUuid } from "./uuid.mjs";

/** The value of a layout selection if the person enters the bits and the epoch. */
const OWN = "own";

/** The inputs, by their names in the fragment of the address. */
const READ = { id: "id", layout: "layout", bits: "bits", epoch: "epoch" };
const MAKE = {
    at: "at",
    make: "make-layout",
    "make-bits": "make-bits",
    "make-epoch": "make-epoch",
    datacenter: "datacenter",
    worker: "worker",
    sequence: "sequence",
};

/** How long an error waits for further typing before it is shown. */
const ERROR_DELAY_MS = 300;

const now = () => BigInt(Date.now());

/** Returns the layout of one of the two forms. Before an input is read, `blame` is called with the input's name. */
function shapeOf(name, bits, epoch, blame) {
    if (name !== OWN) return format(name);
    blame([bits]);
    const shape = format($(bits).value.trim() || LAYOUTS[0].bits);
    blame([epoch]);
    return format(shape, $(epoch).value.trim() || undefined);
}

/**
 * Shows an error, or removes it. An error appears only when the person stops typing, so that a screen reader does not read many
 * errors.
 */
const waiting = new Map();
let typing = false;
function showError(id, text, invalid = []) {
    clearTimeout(waiting.get(id));
    for (const input of $(id).closest("section").querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
    if (!text) {
        $(id).textContent = "";
        return;
    }
    const show = () => {
        $(id).textContent = `${text[0].toUpperCase()}${text.slice(1)}.`;
        for (const input of invalid) $(input).setAttribute("aria-invalid", "true");
    };
    if (typing) waiting.set(id, setTimeout(show, ERROR_DELAY_MS));
    else show();
}

let shown = null;

function read() {
    const pasted = $("id").value.trim();
    const own = $("layout").value === OWN;
    $("own").hidden = !own;
    $("id-note").textContent = "";
    showError("id-error", "");
    let invalid = ["id"];
    shown = null;
    try {
        if (pasted) {
            const found = readId(pasted);
            const { id } = found;
            const all = readings(id, now());
            const likely = all.find(({ verdict }) => verdict === "likely")?.name;
            $("layout").options[0].textContent = likely ? `Suggested: ${likely}` : "Suggested: none";
            const shape = shapeOf($("layout").value || likely || DEFAULT_LAYOUT, "bits", "epoch", (names) => (invalid = names));
            invalid = ["id"];
            shown = { shape, decoded: decode(id, shape) };
            note(found, $("layout").value === "" && !likely);
            showId(shown, all, (name) => choose(name));
        } else {
            $("layout").options[0].textContent = "Suggested";
        }
    } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        showError("id-error", error.message, invalid);
    }
    $("result").hidden = shown === null;
}

function note({ id, form, also, part, others }, guessed) {
    const notes = [];
    if (part !== null) notes.push(`Read ${part} from the URL.`);
    if (others.length > 0) notes.push(`The URL also contains ${others.join(", ")}.`);
    if (also !== null) {
        const other = form === "text" ? "A number" : "13 characters of text";
        const as = form === "text" ? "text" : `a ${form} number`;
        notes.push(`Read as ${as}. ${other} of this form would be ID ${also}.`);
    }
    if (guessed) {
        const why = isMarker(id)
            ? "The number is a limit of integers or a round number, and probably not an ID."
            : "No named layout gives a plausible time and plausible parts.";
        notes.push(`${why} The page shows it in layout ${DEFAULT_LAYOUT}.`);
    }
    $("id-note").textContent = notes.join(" ");
}

function choose(name) {
    $("layout").value = name;
    $("layout").focus();
    update(read);
}

function make() {
    const own = $("make-layout").value === OWN;
    $("make-own").hidden = !own;
    showError("make-error", "");
    $("made").hidden = true;
    let invalid = [];
    try {
        const shape = shapeOf($("make-layout").value, "make-bits", "make-epoch", (names) => (invalid = names));
        for (const [id, name, bits] of [
            ["datacenter", "Datacenter ID", shape.datacenterBits],
            ["worker", "Worker ID", shape.workerBits],
            ["sequence", "Sequence", shape.sequenceBits],
        ]) {
            document.querySelector(`label[for=${id}]`).textContent = `${name} (0 to ${2 ** bits - 1})`;
            $(id).closest(".field").hidden = bits === 0;
        }
        invalid = ["at"];
        const unixMs = toUnixMs($("at").value);
        range(unixMs, shape);
        invalid = ["datacenter", "worker", "sequence"];
        const number = (id, bits) => (bits > 0 ? $(id).value.trim() || "0" : "0");
        const parts = {
            at: unixMs,
            datacenterId: wholeNumber(number("datacenter", shape.datacenterBits), "datacenter ID"),
            workerId: wholeNumber(number("worker", shape.workerBits), "worker ID"),
            sequence: wholeNumber(number("sequence", shape.sequenceBits), "sequence"),
        };
        showMade(encode(parts, shape), shape);
    } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        showError("make-error", error.message, invalid);
    }
}

function wholeNumber(digits, name) {
    if (!/^-?[0-9]+$/.test(digits)) throw new RangeError(`${name} "${digits}" is not a whole number`);
    return BigInt(digits);
}

function showMade(id, shape) {
    const made = decode(id, shape);
    const { min, max } = range(made.unixMs, shape);
    const rows = [
        ["ID", String(id)],
        ["Hexadecimal", `0x${id.toString(16)}`],
        ["Text", made.text],
        ["UUID", toUuid(id)],
        ["Time (UTC)", made.createdAt],
        ["First ID of the tick", String(min)],
        ["Last ID of the tick", String(max)],
    ];
    $("made-forms").replaceChildren(...rows.flatMap(([name, value]) => form(name, value)));
    const length = { 1: "1 ms", 10: "10 ms", 1000: "1 s" }[shape.tickMs];
    $("made-range").textContent = `A tick is ${length}. The first and the last ID are those of all workers in this tick.`;
    const sql = statements(made, shape);
    const blocks = [
        ["Make this ID", sql.encode],
        ["Find the rows of this tick, with the layout in the query", sql.instant],
        ["Find the rows of this tick, with the layout of the server", sql.between],
    ];
    const block = ([caption, text]) =>
        element("figure", {}, element("figcaption", {}, caption, copyButton(text, "the SQL")), element("pre", { tabindex: 0 }, text));
    $("sql").replaceChildren(...blocks.filter(([, text]) => text).map(block));
    $("made").hidden = false;
}

function form(name, value) {
    const code = element("code", { "data-form": name }, value);
    return [element("dt", {}, name), element("dd", {}, code, copyButton(value, name))];
}

/** Copies the parts of the ID that is shown into the form that makes IDs. */
function reuse() {
    const { shape, decoded } = shown;
    $("at").value = decoded.createdAt;
    $("make-layout").value = shape.name ?? OWN;
    $("make-bits").value = shape.name ? "" : shape.bits;
    $("make-epoch").value = shape.name ? "" : toIso(shape.epochMs);
    $("datacenter").value = decoded.datacenterId ?? 0;
    $("worker").value = decoded.workerId ?? 0;
    $("sequence").value = decoded.sequence;
    edited = true;
    update(make);
    $("make-title").scrollIntoView();
    $("at").focus({ preventScroll: true });
}

/** True if the form that makes IDs differs from its initial state. */
let edited = false;

function update(show) {
    typing = true;
    show();
    typing = false;
    const values = new URLSearchParams();
    for (const [name, input] of Object.entries({ ...READ, ...(edited ? MAKE : {}) })) {
        const needed = !$(input).closest("[hidden]:not(#result):not(#made)");
        if ($(input).value.trim() && needed) values.set(name, $(input).value.trim());
    }
    const fragment = String(values);
    if (fragment !== location.hash.slice(1)) history.replaceState(null, "", fragment ? `#${fragment}` : location.href.split("#")[0]);
}

function restore() {
    const values = new URLSearchParams(location.hash.slice(1));
    edited = Object.keys(MAKE).some((name) => values.has(name));
    const start = { at: toIso(now()), make: DEFAULT_LAYOUT, datacenter: "0", worker: "1", sequence: "0" };
    for (const [name, input] of Object.entries({ ...READ, ...MAKE })) {
        $(input).value = values.get(name) ?? start[name] ?? "";
        // If a selection has no option with this value, the default option is selected.
        if ($(input).selectedIndex === -1) $(input).value = start[name] ?? "";
    }
    read();
    make();
}

function start() {
    const names = LAYOUTS.map(({ name, bits }) => element("option", { value: name }, `${name} (${bits})`));
    const own = () => element("option", { value: OWN }, "Own bits and epoch");
    $("layout").append(element("option", { value: "" }, "Suggested"), ...names, own());
    $("make-layout").append(...names.map((name) => name.cloneNode(true)), own());
    const changed = (input, show) => $(input).addEventListener($(input).tagName === "SELECT" ? "change" : "input", show);
    for (const input of Object.values(READ)) changed(input, () => update(read));
    for (const input of Object.values(MAKE)) {
        changed(input, () => {
            edited = true;
            update(make);
        });
    }
    for (const example of document.querySelectorAll(".example")) {
        example.addEventListener("click", () => {
            $("id").value = example.textContent;
            $("layout").value = "";
            update(read);
        });
    }
    $("now").addEventListener("click", () => {
        $("at").value = toIso(now());
        edited = true;
        update(make);
    });
    $("reuse").addEventListener("click", reuse);
    $("link").addEventListener("click", () => copy(location.href, "the link"));
    window.addEventListener("hashchange", restore);
    for (const area of document.querySelectorAll(".scroll")) watchScroll(area, area.previousElementSibling);
    restore();
}

start();
