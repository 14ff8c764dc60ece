/**
 * Snowflake IDs in JavaScript: this module reads an ID, makes an ID from its parts, and converts IDs to text and back.
 *
 * The results are the same as those of the SQL functions of the PostgreSQL extension snowflake_pg. IDs are BigInts, so that IDs
 * above 2^53 are exact. The module has no dependencies, and runs in Node.js and in browsers.
 *
 *     import { decode, encode, range } from "./snowflake.mjs";
 *
 *     decode(1541815603606036480n).createdAt                                        // "2022-06-28T16:07:40.105Z"
 *     encode({ at: "2022-06-28T16:07:40.105Z", workerId: 378 })                     // 1541815603606036480n
 *     range("2016-04-30T11:18:25.796Z", "discord").min                              // 175928847298985984n
 *     decode("180363646902239241", "29:21:13@1s", "2016-09-20T00:00:00+08:00")      // a different layout and epoch
 *
 * A value of the wrong type raises a TypeError, and a value that is invalid or out of range raises a RangeError.
 */

/**
 * A layout that has a name, as the view `snowflake_layouts` shows it.
 *
 * @typedef {object} NamedLayout
 * @property {string} name
 * @property {string} bits The layout in bits, such as `41:10:12`.
 * @property {string} epoch The instant from which ticks are counted, in ISO 8601.
 * @property {string | null} datacenterId What the system stores in this field; null if the layout does not have the field.
 * @property {string | null} workerId What the system stores in this field; null if the layout does not have the field.
 * @property {string} sequence What the system stores in this field.
 */

/**
 * The fields of a layout, and its epoch.
 *
 * @typedef {object} Format
 * @property {string | null} name The name of a named layout; null for a layout in bits.
 * @property {string} bits
 * @property {number} timestampBits
 * @property {number} datacenterBits 0 if the layout does not have the field. This also applies to workerBits.
 * @property {number} workerBits
 * @property {number} sequenceBits
 * @property {boolean} sequenceLowest False if the datacenter ID and the worker ID are below the sequence.
 * @property {bigint} tickMs The length of a tick in milliseconds.
 * @property {bigint} epochMs The epoch in milliseconds since 1970.
 */

/**
 * An ID and its parts.
 *
 * @typedef {object} Decoded
 * @property {bigint} id
 * @property {string} text The 13 characters of the ID.
 * @property {string} createdAt The time in ISO 8601, in UTC, with milliseconds.
 * @property {bigint} unixMs The time in milliseconds since 1970.
 * @property {bigint} tick Ticks since the epoch.
 * @property {number | null} datacenterId Null if the layout does not have the field. This also applies to workerId.
 * @property {number | null} workerId
 * @property {number} sequence
 */

/** The largest ID, which is also the largest `bigint`. */
export const MAX_ID = (1n << 63n) - 1n;

/** The named layout whose bits and epoch a server uses by default. */
export const DEFAULT_LAYOUT = "twitter";

/**
 * The named layouts.
 *
 * @type {ReadonlyArray<Readonly<NamedLayout>>}
 */
export const LAYOUTS = Object.freeze([
    named("twitter", "41:10:12", "2010-11-04T01:42:54.657Z", [
        null,
        "machine: 5 bits of datacenter and 5 of worker",
        "position in the tick",
    ]),
    named("discord", "41:5:5:12", "2015-01-01T00:00:00.000Z", ["internal worker ID", "internal process ID", "counter of the process"]),
    named("instagram", "40:13:10", "2011-08-24T21:07:01.721Z", [null, "logical shard", "counter of the shard"]),
    named("mastodon", "47:0:16", "1970-01-01T00:00:00.000Z", [
        null,
        null,
        "tail: row counter of the table, plus a hash of the time; random for backdated rows",
    ]),
    named("sonyflake", "39:8s:16@10ms", "2014-09-01T00:00:00.000Z", [null, "machine", "position in the tick"]),
    named("uid-generator", "28:22:13@1s", "2016-05-19T16:00:00.000Z", [null, "start of a process", "position in the tick"]),
    named("pgedge", "41:10:12", "2023-01-01T00:00:00.000Z", [null, "snowflake.node", "position in the tick, from a PostgreSQL sequence"]),
    named("leaf", "41:10:12", "2010-11-04T01:42:54.657Z", [null, "worker", "position in the tick, from a random start"]),
]);

function named(name, bits, epoch, [datacenterId, workerId, sequence]) {
    return Object.freeze({ name, bits, epoch, datacenterId, workerId, sequence });
}

/** The last epoch that snowflake_pg accepts: 2199-12-31 23:59:59.999 UTC. */
const MAX_EPOCH_MS = 7_258_118_399_999n;

const TICKS = { "1ms": 1n, "10ms": 10n, "1s": 1_000n };

/**
 * Returns the fields of a layout.
 *
 * @param {string | Format} [layout] A name, or bits such as `41:10:12`, `41:5:5:12` or `39:8s:16@10ms`.
 * @param {string | bigint | number | Date} [epoch] An epoch that differs from the layout's epoch.
 * @returns {Readonly<Format>}
 */
export function format(layout = DEFAULT_LAYOUT, epoch = undefined) {
    let result;
    if (typeof layout === "string") {
        const text = layout.trim();
        const known = LAYOUTS.find(({ name }) => name === lowerCase(text));
        result = {
            ...parseBits(known ? known.bits : text, layout),
            name: known ? known.name : null,
            epochMs: toUnixMs(known ? known.epoch : LAYOUTS[0].epoch),
        };
    } else if (layout !== null && typeof layout === "object" && typeof layout.epochMs === "bigint") {
        result = { ...layout };
    } else {
        throw new TypeError("a layout is a text, such as twitter or 41:10:12");
    }
    if (epoch !== undefined && epoch !== null) {
        result.epochMs = toUnixMs(epoch);
        if (result.epochMs < 0n || result.epochMs > MAX_EPOCH_MS) {
            throw new RangeError("an epoch is between 1970-01-01 and 2199-12-31 23:59:59.999 UTC");
        }
    }
    return Object.freeze(result);
}

function parseBits(bits, shown) {
    const at = bits.indexOf("@");
    const [widths, tick] = at < 0 ? [bits, "1ms"] : [bits.slice(0, at), lowerCase(bits.slice(at + 1))];
    if (!Object.hasOwn(TICKS, tick)) {
        throw new RangeError(`"${shown}" is not a valid layout: a tick is @1ms, @10ms or @1s`);
    }
    const texts = widths.split(":");
    const sequenceSecond = /s$/i.test(texts[1] ?? "");
    if (sequenceSecond) texts[1] = texts[1].slice(0, -1);
    if (texts.length < 3 || texts.length > 4 || !texts.every((text) => /^[0-9]+$/.test(text))) {
        throw new RangeError(`"${shown}" is not a valid layout: write a name, or bits such as 41:10:12, 41:5:5:12 or 39:8s:16@10ms`);
    }
    const numbers = texts.map(Number);
    const timestampBits = numbers.shift();
    const [sequenceBits] = numbers.splice(sequenceSecond ? 0 : -1, 1);
    const workerBits = numbers.pop();
    const datacenterBits = numbers.pop() ?? 0;
    for (const [name, width, min, max] of [
        ["timestamp", timestampBits, 1, 62],
        ["datacenter", datacenterBits, 0, 31],
        ["worker", workerBits, 0, 31],
        ["sequence", sequenceBits, 1, 31],
    ]) {
        if (width < min || width > max) {
            throw new RangeError(`"${shown}" is not a valid layout: the ${name} has ${min} to ${max} bits, not ${width}`);
        }
    }
    const sum = timestampBits + datacenterBits + workerBits + sequenceBits;
    if (sum > 63) throw new RangeError(`"${shown}" is not a valid layout: it has ${sum} bits, and an ID has at most 63`);
    return { bits, timestampBits, datacenterBits, workerBits, sequenceBits, sequenceLowest: !sequenceSecond, tickMs: TICKS[tick] };
}

/**
 * Returns the fields of a layout from the highest bit to the lowest. `bits` is a field's width, and `shift` is its lowest bit.
 *
 * @param {string | Format} [layout]
 * @returns {{ field: "timestamp" | "datacenter" | "worker" | "sequence", bits: number, shift: number }[]}
 */
export function fields(layout = DEFAULT_LAYOUT) {
    const { timestampBits, datacenterBits, workerBits, sequenceBits, sequenceLowest } = format(layout);
    const node = [["datacenter", datacenterBits], ["worker", workerBits]];
    const sequence = ["sequence", sequenceBits];
    const order = [["timestamp", timestampBits], ...(sequenceLowest ? [...node, sequence] : [sequence, ...node])];
    let shift = order.reduce((sum, [, bits]) => sum + bits, 0);
    return order.map(([field, bits]) => ({ field, bits, shift: (shift -= bits) })).filter(({ bits }) => bits > 0);
}

/**
 * Returns the largest ID of a layout.
 *
 * @param {string | Format} [layout]
 * @returns {bigint}
 */
export function lastId(layout = DEFAULT_LAYOUT) {
    const [top] = fields(layout);
    return mask(top.bits + top.shift);
}

/**
 * Returns the parts of an ID.
 *
 * @param {bigint | string | number} id A BigInt, decimal digits, or a number up to 2^53 - 1.
 * @param {string | Format} [layout]
 * @param {string | bigint | number | Date} [epoch] An epoch that differs from the layout's epoch.
 * @returns {Decoded}
 */
export function decode(id, layout = DEFAULT_LAYOUT, epoch = undefined) {
    const shape = format(layout, epoch);
    const value = toId(id);
    if (value > lastId(shape)) throw new RangeError(`${value} is not an ID of layout ${shape.bits}: the largest is ${lastId(shape)}`);
    const parts = Object.fromEntries(fields(shape).map(({ field, bits, shift }) => [field, (value >> BigInt(shift)) & mask(bits)]));
    const number = (part) => (part === undefined ? null : Number(part));
    const unixMs = shape.epochMs + parts.timestamp * shape.tickMs;
    return {
        id: value,
        text: toText(value),
        createdAt: toIso(unixMs),
        unixMs,
        tick: parts.timestamp,
        datacenterId: number(parts.datacenter),
        workerId: number(parts.worker),
        sequence: Number(parts.sequence),
    };
}

/**
 * Returns the ID with the given parts. A fraction of a tick is rounded down.
 *
 * @param {object} parts
 * @param {string | bigint | number | Date} parts.at The time: ISO 8601 with `Z` or an offset, milliseconds since 1970, or a Date.
 * @param {number | bigint} [parts.datacenterId]
 * @param {number | bigint} [parts.workerId]
 * @param {number | bigint} [parts.sequence]
 * @param {string | Format} [layout]
 * @param {string | bigint | number | Date} [epoch] An epoch that differs from the layout's epoch.
 * @returns {bigint}
 */
export function encode({ at, datacenterId = 0, workerId = 0, sequence = 0 }, layout = DEFAULT_LAYOUT, epoch = undefined) {
    const shape = format(layout, epoch);
    const value = (name, part, bits) => {
        const whole = toInteger(part, name);
        if (whole < 0n || whole > mask(bits)) {
            const range = bits > 0 ? `0 to ${mask(bits)}` : "only 0, because the layout does not have this field";
            throw new RangeError(`${name} ${whole} does not fit layout ${shape.bits}: it takes ${range}`);
        }
        return whole;
    };
    const parts = {
        timestamp: tickAt(at, shape),
        datacenter: value("datacenter ID", datacenterId, shape.datacenterBits),
        worker: value("worker ID", workerId, shape.workerBits),
        sequence: value("sequence", sequence, shape.sequenceBits),
    };
    return fields(shape).reduce((id, { field, shift }) => id | (parts[field] << BigInt(shift)), 0n);
}

/**
 * Returns the first and the last ID of the tick that contains an instant.
 *
 * @param {string | bigint | number | Date} at
 * @param {string | Format} [layout]
 * @param {string | bigint | number | Date} [epoch] An epoch that differs from the layout's epoch.
 * @returns {{ min: bigint, max: bigint }}
 */
export function range(at, layout = DEFAULT_LAYOUT, epoch = undefined) {
    const shape = format(layout, epoch);
    const [{ shift }] = fields(shape);
    const min = tickAt(at, shape) << BigInt(shift);
    return { min, max: min | mask(shift) };
}

function tickAt(at, shape) {
    const unixMs = toUnixMs(at);
    const last = mask(shape.timestampBits);
    const since = unixMs - shape.epochMs;
    const tick = since / shape.tickMs;
    if (since < 0n) throw new RangeError(`${toIso(unixMs)} is before the epoch, ${toIso(shape.epochMs)}`);
    if (tick > last) {
        const end = toIso(shape.epochMs + last * shape.tickMs);
        throw new RangeError(`${toIso(unixMs)} is after the last instant of layout ${shape.bits}, ${end}`);
    }
    return tick;
}

/** Crockford's base 32, without I, L, O and U. */
const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TEXT_LENGTH = 13;
/**
 * Returns the 13 characters of an ID, as `snowflake_to_text` returns them. They sort like the IDs.
 *
 * @param {bigint | string | number} id
 * @returns {string}
 */
export function toText(id) {
    let rest = toId(id);
    let text = "";
    for (; text.length < TEXT_LENGTH; rest >>= 5n) text = DIGITS[Number(rest & 31n)] + text;
    return text;
}

/**
 * Returns the ID of 13 characters. Like `snowflake_from_text`, reads lower case like upper case, `I` and `L` as 1, and `O` as 0.
 *
 * @param {string} text
 * @returns {bigint}
 */
export function fromText(text) {
    if (typeof text !== "string") throw new TypeError("the text of an ID is a string");
    const characters = [...text];
    let id = 0n;
    characters.slice(0, TEXT_LENGTH).forEach((character, at) => {
        const upper = /^[0-9A-Za-z]$/.test(character) ? character.toUpperCase() : " ";
        const digit = DIGITS.indexOf(upper.replace(/[IL]/, "1").replace("O", "0"));
        if (digit < 0) throw new RangeError(`"${text}" is not the text of an ID: character ${at + 1} is not a digit of base 32`);
        id = (id << 5n) | BigInt(digit);
    });
    if (characters.length !== TEXT_LENGTH) {
        throw new RangeError(`"${text}" is not the text of an ID: it has ${characters.length} characters, not ${TEXT_LENGTH}`);
    }
    if (id > MAX_ID) throw new RangeError(`"${text}" is not the text of an ID: the first character is at most 7`);
    return id;
}

/**
 * Returns an instant as milliseconds since 1970. Fractions of a millisecond are rounded down.
 *
 * @param {string | bigint | number | Date} at ISO 8601 with `Z` or an offset, milliseconds since 1970, or a Date.
 * @returns {bigint}
 */
export function toUnixMs(at) {
    if (typeof at === "bigint") return at;
    if (typeof at === "string") return parseIso(at);
    if (typeof at !== "number" && !(at instanceof Date)) throw new TypeError("an instant is a text in ISO 8601, a Date, or milliseconds");
    const ms = Number(at);
    if (!Number.isFinite(ms)) throw new RangeError("the instant is not a valid date");
    return BigInt(Math.floor(ms));
}

const ISO = /^([+-]\d{6,}|\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)? ?(?:([Zz])|([+-])(\d\d)(?::?(\d\d))?)?$/;

// A Date has no year above 275760, but the Gregorian calendar repeats after 400 years, which are 146,097 days.
const ERA_MS = 146_097n * 86_400_000n;

function parseIso(text) {
    const found = ISO.exec(text.trim());
    if (!found) throw new RangeError(`"${text}" is not a time: write it like 2026-01-31T12:00:00Z`);
    const [, year, month, day, hour = "00", minute = "00", second = "00", fraction = "", z, sign, hours = "0", minutes = "0"] = found;
    if (!z && !sign) throw new RangeError(`"${text}" has no time zone: add Z for UTC, or an offset such as +02:00`);
    const eras = floorDivide(BigInt(year) - 1970n, 400n);
    const time = `${BigInt(year) - eras * 400n}-${month}-${day}T${hour}:${minute}:${second}`;
    const date = new Date(`${time}.${fraction.padEnd(3, "0").slice(0, 3)}Z`);
    // A Date reads 31 February as 2 or 3 March.
    if (Number.isNaN(date.getTime()) || !date.toISOString().startsWith(time) || hours > 15 || minutes > 59) {
        throw new RangeError(`"${text}" is not a time: there is no such date, hour or offset`);
    }
    const offset = (BigInt(hours) * 60n + BigInt(minutes)) * 60_000n;
    return BigInt(date.getTime()) + eras * ERA_MS - (sign === "-" ? -offset : offset);
}

/**
 * Returns an instant in ISO 8601, in UTC, with milliseconds. A year outside 0 to 9999 has a sign and at least six digits, as in
 * `Date.prototype.toISOString`, but any year is possible.
 *
 * @param {bigint} unixMs
 * @returns {string}
 */
export function toIso(unixMs) {
    const eras = floorDivide(unixMs, ERA_MS);
    const date = new Date(Number(unixMs - eras * ERA_MS));
    const year = BigInt(date.getUTCFullYear()) + eras * 400n;
    const digits = String(year < 0n ? -year : year);
    const sign = year < 0n ? "-" : year > 9_999n ? "+" : "";
    return sign + digits.padStart(sign ? 6 : 4, "0") + date.toISOString().slice(4);
}

function floorDivide(value, divisor) {
    const quotient = value / divisor;
    return value % divisor < 0n ? quotient - 1n : quotient;
}

function mask(bits) {
    return (1n << BigInt(bits)) - 1n;
}

function toId(id) {
    const value = toInteger(id, "ID");
    if (value < 0n) throw new RangeError(`${value} is not an ID: it is negative`);
    if (value > MAX_ID) throw new RangeError(`${value} is not an ID: the largest is ${MAX_ID}`);
    return value;
}

function toInteger(value, name) {
    if (typeof value === "bigint") return value;
    if (typeof value === "string") {
        if (/^-?[0-9]+$/.test(value)) return BigInt(value);
        throw new RangeError(`"${value}" is not a whole number`);
    }
    if (typeof value !== "number") throw new TypeError(`the ${name} is a BigInt, decimal digits in a string, or a number`);
    if (!Number.isInteger(value)) throw new RangeError(`${value} is not a whole number`);
    if (!Number.isSafeInteger(value)) {
        throw new RangeError(`the number ${value} may be rounded, because it is above 2^53: pass a BigInt or a string`);
    }
    return BigInt(value);
}

/** Returns the text in lower case, but changes only A to Z. toLowerCase would also turn some other letters into a to z. */
function lowerCase(text) {
    return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
