/**
 * Which named layout an ID probably has.
 *
 * Any number can be read in every layout, and most give a valid time. So this is a guess, made in two steps. First, the time must be
 * plausible: from one day after the epoch, because smaller numbers are rarely Snowflake IDs, to one day after now. Second, of the
 * layouts with a plausible time, the one that describes the ID most briefly is the likely one: a small worker ID or sequence needs
 * fewer bits than a large one, and real ones are often small, whereas the wrong layout reads random bits. The description also names
 * the system, which takes more bits for a system whose IDs are seen less often.
 */

import { LAYOUTS, decode, format } from "./snowflake.mjs";

const DAY_MS = 86_400_000n;

/** How many bits longer the name of a system is than that of Twitter or Discord: an estimate of how much less often its IDs are seen. */
const RARER = { instagram: 3, mastodon: 3, sonyflake: 6, "uid-generator": 8, pgedge: 2 };

/**
 * @typedef {object} Reading An ID, read in a named layout.
 * @property {string} name
 * @property {import("./snowflake.mjs").Decoded | null} decoded Null if the ID is too large for the layout.
 * @property {"likely" | "same" | "possible" | "early" | "future" | "invalid"} verdict `same`: the layout has the bits and the epoch of
 *     the likely one.
 */

/**
 * The ID in every named layout, in the order of the layouts. At most one is likely.
 *
 * @param {bigint} id
 * @param {bigint} now Milliseconds since 1970.
 * @returns {Reading[]}
 */
export function readings(id, now) {
    const all = LAYOUTS.map(({ name }) => reading(id, now, format(name)));
    const possible = all.filter(({ verdict }) => verdict === "possible");
    // The first of those that are equal.
    const likely = possible.reduce((best, other) => (best && best.length <= other.length ? best : other), null);
    for (const other of possible) {
        if (other.length === likely.length && other.key === likely.key) other.verdict = "same";
    }
    if (likely) likely.verdict = "likely";
    return all.map(({ name, decoded, verdict }) => ({ name, decoded, verdict }));
}

function reading(id, now, shape) {
    const { name } = shape;
    let decoded = null;
    try {
        decoded = decode(id, shape);
    } catch {
        return { name, decoded, verdict: "invalid" };
    }
    const { unixMs, datacenterId, workerId, sequence } = decoded;
    const key = `${shape.bits} ${shape.epochMs}`;
    if (unixMs > now + DAY_MS) return { name, decoded, verdict: "future" };
    if (unixMs < shape.epochMs + DAY_MS) return { name, decoded, verdict: "early" };
    const length =
        (RARER[name] ?? 0) +
        Math.log2(Number((now - shape.epochMs) / shape.tickMs)) +
        description(datacenterId, shape.datacenterBits) +
        description(workerId, shape.workerBits) +
        description(sequence, shape.sequenceBits);
    return { name, decoded, verdict: "possible", length, key };
}

/** How many bits describe a number: its length, and which number of this length it is. */
function description(value, bits) {
    return bits === 0 ? 0 : Math.log2(bits + 1) + Math.log2(value + 1);
}
