/**
 * IDs as version 8 UUIDs (RFC 9562), like the SQL functions `snowflake_to_uuid` and `snowflake_from_uuid`.
 *
 * The 63 bits of an ID are the first bits of the UUID that belong neither to the version nor to the variant. The other bits are 0.
 */

const VERSION = 8n;
const VARIANT = 0b10n;

/** Where the lowest bit of the version and of the variant are, counted from the lowest bit of the UUID. */
const VERSION_SHIFT = 76n;
const VARIANT_SHIFT = 62n;

/** The bits of the ID before the version, between the version and the variant, and after the variant: their number and lowest bit. */
const PARTS = [
    [48n, 80n],
    [12n, 64n],
    [3n, 59n],
];

/** A UUID as PostgreSQL reads it: with or without hyphens and braces. `urn:uuid:` is also accepted. */
const UUID = /^(?:urn:uuid:)?\{?[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}\}?$/i;

/**
 * Returns the UUID of an ID.
 *
 * @param {bigint} id
 * @returns {string}
 */
export function toUuid(id) {
    let rest = id;
    let uuid = (VERSION << VERSION_SHIFT) | (VARIANT << VARIANT_SHIFT);
    for (const [bits, shift] of [...PARTS].reverse()) {
        uuid |= (rest & mask(bits)) << shift;
        rest >>= bits;
    }
    return hyphenated(uuid);
}

/** Returns true if a text has the form of a UUID. The UUID is not necessarily that of an ID. */
export function isUuid(text) {
    return UUID.test(text) && /\{/.test(text) === /\}/.test(text);
}

/**
 * Returns the ID of a UUID that `snowflake_to_uuid` returned. Any other UUID raises a RangeError.
 *
 * @param {string} text
 * @returns {bigint}
 */
export function fromUuid(text) {
    const uuid = BigInt(`0x${text.replace(/^urn:uuid:/i, "").replace(/[{}-]/g, "")}`);
    const refuse = (why) => new RangeError(`UUID ${hyphenated(uuid)} is not an ID in UUID form: ${why}`);
    const version = (uuid >> VERSION_SHIFT) & mask(4n);
    if (((uuid >> VARIANT_SHIFT) & mask(2n)) !== VARIANT) throw refuse("it does not have the variant of RFC 9562");
    if (version !== VERSION) throw refuse(`it has version ${version}, not ${VERSION}`);
    const unused = PARTS.at(-1)[1];
    if ((uuid & mask(unused)) !== 0n) throw refuse(`its last ${unused} bits are not 0`);
    return PARTS.reduce((id, [bits, shift]) => (id << bits) | ((uuid >> shift) & mask(bits)), 0n);
}

function hyphenated(uuid) {
    return uuid.toString(16).padStart(32, "0").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

function mask(bits) {
    return (1n << bits) - 1n;
}
