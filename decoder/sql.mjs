/** SQL statements that make an ID with snowflake_pg and that find the rows for an instant. */

import { DEFAULT_LAYOUT, LAYOUTS, format, toIso } from "./snowflake.mjs";

/**
 * Returns statements for an ID's parts. The table `orders` and its key `id` are examples.
 *
 * @param {{ unixMs: bigint, datacenterId: number | null, workerId: number | null, sequence: number }} parts
 * @param {import("./snowflake.mjs").Format} shape
 * @returns {{ encode: string, instant: string, between: string | null }} The statement `between` uses the server's layout and
 *     epoch. It is null if the layout or the epoch is not the default.
 */
export function statements(parts, shape) {
    const time = `'${sqlTime(parts.unixMs)}'`;
    const layout = layoutArguments(shape);
    const numbers = [`worker_id => ${parts.workerId ?? 0}`, `sequence => ${parts.sequence}`];
    if (parts.datacenterId !== null) numbers.push(`datacenter_id => ${parts.datacenterId}`);
    const named = layout.map((text, at) => `${["layout", "epoch"][at]} => ${text}`);
    const bounds = [time, ...layout].join(", ");
    const standard = format(DEFAULT_LAYOUT);
    const end = `'${sqlTime(parts.unixMs + shape.tickMs)}'`;
    return {
        encode: `SELECT snowflake_encode(${[time, ...numbers, ...named].join(", ")});`,
        instant: `SELECT * FROM orders\nWHERE id >= snowflake_min_id(${bounds})\n  AND id <= snowflake_max_id(${bounds});`,
        between:
            shape.bits === standard.bits && shape.epochMs === standard.epochMs
                ? `SELECT * FROM orders\nWHERE snowflake_between(id, ${time}, ${end});`
                : null,
    };
}

/** Returns the layout, and also the epoch if it differs from the layout's own epoch. */
function layoutArguments(shape) {
    const named = LAYOUTS.find(({ name }) => name === shape.name);
    const layout = `'${named ? named.name : shape.bits}'`;
    return format(named ? named.name : shape.bits).epochMs === shape.epochMs ? [layout] : [layout, `'${sqlTime(shape.epochMs)}'`];
}

/** Returns an instant as PostgreSQL reads it: without the sign of a year above 9999. */
function sqlTime(unixMs) {
    return toIso(unixMs).replace(/^\+0*/, "").replace("T", " ");
}
