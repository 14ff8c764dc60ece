/**
 * The forms in which a person can paste an ID: decimal digits, with or without separators, hexadecimal digits, the 13 characters of
 * its text, its UUID, or a URL that contains one of them.
 */

import { MAX_ID, fromText } from "./snowflake.mjs";
import { fromUuid, isUuid } from "./uuid.mjs";

/**
 * @typedef {object} Read What a pasted text contains.
 * @property {bigint} id
 * @property {"decimal" | "hexadecimal" | "text" | "uuid"} form
 * @property {bigint | null} also The ID that the same characters are in another form: some numbers are also the texts of IDs.
 * @property {string | null} part The part of the pasted text that was read, if the rest was ignored.
 * @property {string[]} others Other parts that are as long as IDs.
 */

/**
 * Returns the ID of a pasted text. White space and quotation marks around the text are ignored.
 *
 * Text that consists only of digits is decimal, and `0x` begins a hexadecimal number.
 *
 * @param {string} pasted
 * @returns {Read}
 */
export function readId(pasted) {
    const text = pasted.trim().replace(/[,;]$/, "").replace(/^(["'`])(.*)\1$/, "$2").trim();
    const whole = { part: null, others: [] };
    if (isUuid(text) && !/^[0-9]+$/.test(text)) return { id: fromUuid(text), form: "uuid", also: null, ...whole };
    if (isUrl(text)) return readUrl(text);
    const number = isNumber(text);
    // snowflake_to_text writes capital letters, whereas nearly everybody writes hexadecimal numbers with a small x.
    if (number && !(text.startsWith("0X") && textId(text) !== null)) {
        const id = numberId(text);
        const also = textId(text);
        return { id, form: /x/i.test(text) ? "hexadecimal" : "decimal", also: also === id ? null : also, ...whole };
    }
    if (/^-[0-9]+$/.test(text)) throw new RangeError(`${text} is not an ID: it is negative`);
    if (/^0x/i.test(text) && text.length !== 13) throw new RangeError(`"${text}" is not a hexadecimal number`);
    const digits = withoutSeparators(text);
    if (digits !== null) return { id: numberId(digits), form: "decimal", also: null, ...whole };
    if (/^[0-9]+(?:[,;_\s]+[0-9]+)+$/.test(text)) throw new RangeError(`"${text}" is not an ID: write the digits of one number`);
    if (/^[0-9][0-9.,_'’\s]*(e[0-9+]+)?$/i.test(text)) throw new RangeError(`"${text}" is not an ID: write the digits only`);
    return { id: fromText(text), form: "text", also: number ? BigInt(text) : null, ...whole };
}

function isNumber(text) {
    return /^[0-9]+$/.test(text) || /^0x[0-9a-f]+$/i.test(text);
}

function numberId(text) {
    const id = BigInt(text);
    if (id > MAX_ID) throw new RangeError(`${id} is not an ID: the largest is ${MAX_ID}`);
    return id;
}

function textId(text) {
    try {
        return fromText(text);
    } catch {
        return null;
    }
}

/**
 * Returns the digits of a number that is written with separators, or null. Commas, apostrophes and points must separate groups of
 * digits as they do in large numbers, because otherwise a list or a number with a fraction would be read as one ID. Spaces and
 * underscores may be anywhere, unless there are more digits than an ID has.
 */
function withoutSeparators(text) {
    const grouped = /^[0-9]{1,3}(?:(?:,[0-9]{2,3})*,|(?:['’][0-9]{3})*['’]|(?:\.[0-9]{3})+\.)[0-9]{3}$/;
    if (grouped.test(text)) return text.replace(/[^0-9]/g, "");
    if (!/^[0-9]+(?:_[0-9]+)+$/.test(text) && !/^[0-9]+(?:\s+[0-9]+)+$/.test(text)) return null;
    const digits = text.replace(/[^0-9]/g, "");
    return digits.length > String(MAX_ID).length ? null : digits;
}

/** A text without white space in which a slash, a question mark or an equals sign separates parts: a whole URL or the end of one. */
function isUrl(text) {
    return /^[^\s<>]*[/?=][^\s<>]*$/.test(text);
}

/** How many characters a part of a URL has at least if it is pointed out beside the part that was read. */
const AS_LONG_AS_AN_ID = 13;

/**
 * Returns the ID in a URL. If several parts of the path, the query or the fragment are IDs, the longest part is the ID, because the
 * other parts are more likely to be numbers of pages, versions or times. Of parts with the same length, the last one is the ID, because
 * a path begins with what contains the rest.
 */
function readUrl(text) {
    const host = /^(?:[a-z][a-z0-9+.-]*:\/\/[^/?#]*|[^/?#=]*[.:][^/?#=]*(?=[/?#]))/i;
    const found = [];
    for (const part of decoded(text.replace(host, "")).match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-z]+/gi) ?? []) {
        const read = readPart(part);
        if (read) found.push({ part, ...read });
    }
    const best = found.reduce((best, other) => (best && best.part.length > other.part.length ? best : other), null);
    if (!best) throw new RangeError(`no part of "${text}" is an ID`);
    const others = found.filter(({ id, part }) => id !== best.id && part.length >= AS_LONG_AS_AN_ID).map(({ part }) => part);
    return { ...best, also: null, others };
}

/** Returns the ID of a part of a URL, or null. Only a digit begins the text of an ID here, because many words have 13 letters. */
function readPart(part) {
    try {
        if (isUuid(part) && part.includes("-")) return { id: fromUuid(part), form: "uuid" };
        if (isNumber(part)) return { id: numberId(part), form: /x/i.test(part) ? "hexadecimal" : "decimal" };
        return /^[0-7]/.test(part) ? { id: fromText(part), form: "text" } : null;
    } catch {
        return null;
    }
}

function decoded(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}
