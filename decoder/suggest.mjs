/**
 * Finds the named layout that an ID probably has.
 *
 * Any number can be read in every layout, and most numbers then have a valid time. Therefore, the result is a guess, which is
 * made in two steps. First, the time must be plausible. It must be at least one day after the epoch, because smaller numbers are
 * rarely Snowflake IDs, and at most one day after now. Second, of the layouts with a plausible time, the layout that describes
 * the ID most briefly is the likely one. A small worker ID or sequence needs fewer bits than a large one. Real worker IDs and
 * sequences are often small, whereas the wrong layout reads random bits. The description also names the system. The name takes
 * more bits for a system whose IDs are seen less often.
 */

import { LAYOUTS, decode, format } from "./snowflake.mjs";

const DAY_MS = 86_400_000n;

/**
 * How many more bits a system's name takes than the name of Twitter or Discord. This is an estimate of how much less often the
 * system's IDs are seen.
 */
const RARER = { instagram: 3, mastodon: 3, sonyflake: 6, "uid-generator": 8, pgedge: 2 };

/**
 * @typedef {object} Reading An ID, read in a named layout.
 * @property {string} name
 * @property {import("./snowflake.mjs").Decoded | null} decoded Null if the ID is too large for the layout.
 * @property {"likely" | "same" | "possible" | "early" | "future" | "invalid"} verdict `same`: the layout has the same bits and
 *     the same epoch as the likely layout.
 */

/**
 * Returns the ID as read in every named layout, in the order of the layouts. At most one layout is likely.
 *
 * @param {bigint} id
 * @param {bigint} now Milliseconds since 1970.
 * @returns {Reading[]}
 */
export function readings(id, now) {
    const all = LAYOUTS.map(({ name }) => reading(id, now, format(name)));
    const possible = all.filter(({ verdict }) => verdict === "possible");
    // If several layouts have the shortest description, the first of them is the likely layout.
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

/** Returns how many bits describe a number: the bits for its length, and the bits for its position among numbers of this length. */
function description(value, bits) {
    return bits === 0 ? 0 : Math.log2(bits + 1) + Math.log2(value + 1);
}
