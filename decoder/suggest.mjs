/**
 * Finds the named layout that an ID probably has.
 *
 * Any number can be read in every layout, and most numbers then have a valid time. Therefore, the result is a guess, which is
 * made in two steps. First, the time must be plausible. It must be at least one day after the epoch, because smaller numbers are
 * rarely Snowflake IDs, and at most one day after now. Second, of the layouts with a plausible time, the layout that describes
 * the ID most briefly is the likely one. A small worker ID or sequence needs fewer bits than a large one. Real worker IDs and
 * sequences are often small, whereas the wrong layout reads random bits. The description also names the system. The name takes
 * more bits for a system whose IDs are seen less often.
 *
 * No layout is likely for a limit of an integer type or a round number, which programs use as markers, or if the description is longer
 * than that of any usual ID.
 */

import { LAYOUTS, decode, format } from "./snowflake.mjs";

const DAY_MS = 86_400_000n;

/**
 * How many more bits a system's name takes than the name of Twitter or Discord. This is an estimate of how much less often the
 * system's IDs are seen.
 */
const RARER = { instagram: 3, mastodon: 3, sonyflake: 6, "uid-generator": 8, pgedge: 2 };

/**
 * When a system began to issue IDs, in milliseconds since 1970, if this was years after its epoch. Mastodon counts from 1970, and its
 * first release was in 2016.
 */
const SINCE_MS = { mastodon: BigInt(Date.UTC(2016, 0, 1)) };

/**
 * The longest description that a likely layout can have, in bits. The descriptions of all IDs of the other layouts are shorter. An ID
 * of uid-generator has a longer one only if its worker ID, which counts the starts of all processes, is above 100,000.
 */
const LONGEST = 74;

/**
 * @typedef {object} Reading An ID, read in a named layout.
 * @property {string} name
 * @property {import("./snowflake.mjs").Decoded | null} decoded Null if the ID is too large for the layout.
 * @property {"likely" | "same" | "possible" | "early" | "future" | "large" | "marker" | "invalid"} verdict `same`: the layout has the
 *     same bits and the same epoch as the likely layout. `large`: the parts are unusually large. `marker`: see {@link isMarker}.
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
    if (unixMs < (SINCE_MS[name] ?? shape.epochMs) + DAY_MS) return { name, decoded, verdict: "early" };
    if (isMarker(id)) return { name, decoded, verdict: "marker" };
    const length =
        (RARER[name] ?? 0) +
        Math.log2(Number((now - shape.epochMs) / shape.tickMs)) +
        description(datacenterId, shape.datacenterBits) +
        description(workerId, shape.workerBits) +
        description(sequence, shape.sequenceBits);
    return { name, decoded, verdict: length > LONGEST ? "large" : "possible", length, key };
}

/**
 * Returns true for a power of 2 and for the number below it, such as the largest `bigint` and the largest safe integer of JavaScript,
 * and for numbers that end in twelve zeros or nines. An issued ID is practically never such a number.
 *
 * @param {bigint} id
 */
export function isMarker(id) {
    return (id & (id - 1n)) === 0n || (id & (id + 1n)) === 0n || (id > 10n ** 12n && /(?:0{12}|9{12})$/.test(String(id)));
}

/** Returns how many bits describe a number: the bits for its length, and the bits for its position among numbers of this length. */
function description(value, bits) {
    return bits === 0 ? 0 : Math.log2(bits + 1) + Math.log2(value + 1);
}
