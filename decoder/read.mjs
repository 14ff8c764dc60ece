/** The forms in which a person can paste an ID: decimal digits, hexadecimal digits, or the 13 characters of its text. */

import { MAX_ID, fromText } from "./snowflake.mjs";

/**
 * Returns the ID of a pasted text. White space and quotation marks around the text are ignored.
 *
 * Text that consists only of digits is decimal, and `0x` begins a hexadecimal number. Some numbers are also the texts of other
 * IDs. In this case, `also` is that other ID.
 *
 * @param {string} pasted
 * @returns {{ id: bigint, form: "decimal" | "hexadecimal" | "text", also: bigint | null }}
 */
export function readId(pasted) {
    const text = pasted.trim().replace(/^(["'`])(.*)\1[,;]?$/, "$2").trim();
    const number = /^[0-9]+$/.test(text) || /^0x[0-9a-f]+$/i.test(text);
    // snowflake_to_text writes capital letters, whereas nearly everybody writes hexadecimal numbers with a small x.
    if (number && !(text.startsWith("0X") && textId(text) !== null)) {
        const id = BigInt(text);
        if (id > MAX_ID) throw new RangeError(`${id} is not an ID: the largest is ${MAX_ID}`);
        const also = textId(text);
        return { id, form: /x/i.test(text) ? "hexadecimal" : "decimal", also: also === id ? null : also };
    }
    if (/^-[0-9]+$/.test(text)) throw new RangeError(`${text} is not an ID: it is negative`);
    if (/^0x/i.test(text) && text.length !== 13) throw new RangeError(`"${text}" is not a hexadecimal number`);
    if (/^[0-9.,_ ]+(e[0-9+]+)?$/i.test(text)) throw new RangeError(`"${text}" is not an ID: write the digits only`);
    return { id: fromText(text), form: "text", also: number ? BigInt(text) : null };
}

function textId(text) {
    try {
        return fromText(text);
    } catch {
        return null;
    }
}
