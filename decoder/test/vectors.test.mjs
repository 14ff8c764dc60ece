/** Tests decoder/snowflake.mjs with every vector of tests/vectors.json, or of the file that VECTORS names. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { LAYOUTS, decode, encode, fields, format, fromText, lastId, range, toIso, toText, toUnixMs } from "../snowflake.mjs";

const VECTORS = process.env.VECTORS ?? new URL("../../tests/vectors.json", import.meta.url);
const { layouts, ids, spellings, errors } = JSON.parse(readFileSync(VECTORS, "utf8"));

test("the file has several hundred vectors", () => {
    assert.ok(ids.length > 400 && errors.length > 200, `${ids.length} IDs and ${errors.length} errors`);
});

test("the named layouts are those of the core", () => {
    assert.deepEqual(
        LAYOUTS.map(({ name }) => name),
        layouts.map(({ name }) => name),
    );
    for (const layout of layouts) {
        const { name, bits, epoch, datacenterId, workerId, sequence } = LAYOUTS.find((known) => known.name === layout.name);
        const meaning = { datacenter_id: datacenterId, worker_id: workerId, sequence };
        const shape = format(name.toUpperCase());
        const widths = {
            timestamp_bits: shape.timestampBits,
            datacenter_bits: shape.datacenterBits,
            worker_bits: shape.workerBits,
            sequence_bits: shape.sequenceBits,
            sequence_lowest: shape.sequenceLowest,
        };
        const tick_ms = Number(shape.tickMs);
        assert.deepEqual({ name, bits, epoch, tick_ms, ...widths, ...meaning, last_id: String(lastId(name)) }, layout);
        assert.equal(toIso(shape.epochMs), epoch);
        assert.equal(
            fields(name).reduce((sum, field) => sum + field.bits, 0),
            BigInt(layout.last_id).toString(2).length,
        );
    }
});

test("every ID has its parts, its text and its range", () => {
    for (const vector of ids) {
        const { layout, epoch, id } = vector;
        const read = decode(id, layout, epoch);
        const { min, max } = range(read.unixMs, layout, epoch);
        const found = {
            layout,
            epoch,
            id: String(read.id),
            created_at: read.createdAt,
            datacenter_id: read.datacenterId,
            worker_id: read.workerId,
            sequence: read.sequence,
            text: read.text,
            min_id: String(min),
            max_id: String(max),
        };
        assert.deepEqual(found, vector, `ID ${id}: found ${JSON.stringify(found)}, and the vector is ${JSON.stringify(vector)}`);
        const parts = {
            at: vector.created_at,
            datacenterId: vector.datacenter_id ?? 0,
            workerId: vector.worker_id ?? 0,
            sequence: vector.sequence,
        };
        assert.equal(encode(parts, layout, epoch), BigInt(id), `the parts of ${id}, ${layout}`);
        assert.equal(toText(BigInt(id)), vector.text);
        assert.equal(fromText(vector.text), BigInt(id));
        assert.deepEqual(range(vector.created_at, layout, epoch), { min, max });
        const named = layouts.find(({ name }) => name === layout);
        if (named) {
            assert.deepEqual(decode(BigInt(id), layout), read);
            assert.deepEqual(decode(id, named.bits, epoch), read);
        }
    }
});

test("texts are read in other spellings", () => {
    for (const { text, id } of spellings) assert.equal(fromText(text), BigInt(id), text);
});

test("invalid input is refused", () => {
    const calls = {
        decode: ({ id, layout, epoch }) => decode(id, layout, epoch),
        range: ({ created_at, layout, epoch }) => range(created_at, layout, epoch),
        encode: ({ created_at, datacenter_id, worker_id, sequence, layout, epoch }) =>
            encode({ at: created_at, datacenterId: datacenter_id, workerId: worker_id, sequence }, layout, epoch),
        layout: ({ layout }) => decode(0n, layout),
        from_text: ({ text }) => fromText(text),
        to_text: ({ id }) => toText(id),
    };
    for (const vector of errors) {
        assert.equal(vector.expected, "error");
        assert.throws(() => calls[vector.call](vector), RangeError, JSON.stringify(vector));
    }
});

test("values that are not exact, or of another type, are refused", () => {
    const last = Number.MAX_SAFE_INTEGER;
    assert.equal(decode(last, "41:4:8").id, 9007199254740991n);
    assert.throws(() => decode(last + 1), /may be rounded, because it is above 2\^53/);
    assert.throws(() => decode(1.5), /1.5 is not a whole number/);
    assert.throws(() => decode("1e3"), RangeError);
    assert.throws(() => decode(undefined), TypeError);
    assert.throws(() => decode(null), TypeError);
    assert.throws(() => decode(1n, 41), TypeError);
    assert.throws(() => fromText(1n), TypeError);
    assert.throws(() => encode({ at: {} }), TypeError);
    assert.throws(() => encode({ at: new Date(Number.NaN) }), RangeError);
});

test("times are read in ISO 8601", () => {
    for (const [text, same] of [
        ["2016-04-30T11:18:25.796Z", "2016-04-30T11:18:25.796Z"],
        ["2016-04-30 11:18:25.796+00", "2016-04-30T11:18:25.796Z"],
        ["2016-04-30 13:18:25.7969+02:00", "2016-04-30T11:18:25.796Z"],
        ["2016-04-30T05:48:25.7-0530", "2016-04-30T11:18:25.700Z"],
        ["2016-04-30T11:18Z", "2016-04-30T11:18:00.000Z"],
        ["2016-04-30Z", "2016-04-30T00:00:00.000Z"],
        ["2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000Z"],
        ["+275760-09-13T00:00:00.000Z", "+275760-09-13T00:00:00.000Z"],
        ["0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"],
        ["-000001-12-31T23:59:59.999Z", "-000001-12-31T23:59:59.999Z"],
    ]) {
        assert.equal(toIso(toUnixMs(text)), same, text);
        assert.equal(toUnixMs(text), BigInt(Date.parse(same)), text);
        assert.equal(toUnixMs(new Date(same)), BigInt(Date.parse(same)), text);
    }
    for (let ms = -3n * 10n ** 13n; ms < 10n ** 14n; ms += 987_654_321_012n) {
        assert.equal(toIso(ms), new Date(Number(ms)).toISOString());
    }
    assert.throws(() => toUnixMs("2016-04-30T11:18:25"), /has no time zone: add Z/);
    for (const text of ["", "now", "2016-02-30T00:00:00Z", "1900-02-29Z", "2016-13-01Z", "2016-01-01T24:00:00Z", "2016-01-01T00:60Z"]) {
        assert.throws(() => toUnixMs(text), RangeError, text);
    }
});
