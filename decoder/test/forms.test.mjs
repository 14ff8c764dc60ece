/** Tests the forms in which an ID can be pasted, the UUIDs of IDs, and which layout is suggested for an ID. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { readId } from "../read.mjs";
import { MAX_ID, encode } from "../snowflake.mjs";
import { readings } from "../suggest.mjs";
import { fromUuid, isUuid, toUuid } from "../uuid.mjs";

const VECTORS = process.env.VECTORS ?? new URL("../../tests/vectors.json", import.meta.url);
const { ids } = JSON.parse(readFileSync(VECTORS, "utf8"));

const ID = 1541815603606036480n;
const TEXT = "1ASD13XH1F800";
const UUID = "2acb423e-c42f-8400-8000-000000000000";

test("an ID is read in each form", () => {
    for (const [pasted, form] of [
        ["1541815603606036480", "decimal"],
        [" '1541815603606036480', ", "decimal"],
        ["1541815603606036480;", "decimal"],
        ["1,541,815,603,606,036,480", "decimal"],
        ["1,54,18,15,60,36,06,036,480", "decimal"],
        ["1.541.815.603.606.036.480", "decimal"],
        ["1'541'815'603'606'036'480", "decimal"],
        ["1_541_815_603_606_036_480", "decimal"],
        ["1 541 815 603 606 036 480", "decimal"],
        ["1\u202f541\u202f815\u202f603\u202f606\u202f036\u202f480", "decimal"],
        ["1541815603\n  606036480", "decimal"],
        ["0x1565a11f6217a000", "hexadecimal"],
        [TEXT, "text"],
        [UUID, "uuid"],
        [UUID.toUpperCase(), "uuid"],
        [`{${UUID}}`, "uuid"],
        [`urn:uuid:${UUID}`, "uuid"],
        [UUID.replaceAll("-", ""), "uuid"],
    ]) {
        const { id, form: found, part, others } = readId(pasted);
        assert.deepEqual([id, found, part, others], [ID, form, null, []], pasted);
    }
});

test("an ID is read from a URL", () => {
    for (const [pasted, part, form, ...others] of [
        ["https://shop.example/orders/1541815603606036480", "1541815603606036480", "decimal"],
        ["https://shop.example:8443/orders?id=1541815603606036480&page=2#line-3", "1541815603606036480", "decimal"],
        ["https://shop.example/orders?t=1700000000000&id=1541815603606036480", "1541815603606036480", "decimal", "1700000000000"],
        ["https://shop.example/1700000000000000000/1541815603606036480/edit", "1541815603606036480", "decimal", "1700000000000000000"],
        ["https://shop.example/order-1541815603606036480.json", "1541815603606036480", "decimal"],
        ["https://shop.example/?id=%31541815603606036480", "1541815603606036480", "decimal"],
        ["https://127.0.0.1:8443/orders/1541815603606036480/", "1541815603606036480", "decimal"],
        ["shop.example/orders/1541815603606036480", "1541815603606036480", "decimal"],
        ["/orders/1541815603606036480", "1541815603606036480", "decimal"],
        ["?id=1541815603606036480", "1541815603606036480", "decimal"],
        ["id=1541815603606036480", "1541815603606036480", "decimal"],
        ["https://shop.example/orders/0x1565a11f6217a000", "0x1565a11f6217a000", "hexadecimal"],
        [`https://shop.example/notifications/${TEXT}`, TEXT, "text"],
        [`https://shop.example/international/${UUID}?v=7`, UUID, "uuid"],
    ]) {
        const read = readId(pasted);
        assert.deepEqual([read.id, read.form, read.part, read.others], [ID, form, part, others], pasted);
    }
    assert.equal(readId("https://127.0.0.1:8443/orders/12345").id, 12345n);
});

test("what is not one ID is refused", () => {
    for (const [pasted, message] of [
        ["1,5", /write the digits of one number/],
        ["1.541", /write the digits only/],
        ["1541815603606036480, 1541815603606036481", /write the digits of one number/],
        ["1541815603606036480 1541815603606036481", /write the digits of one number/],
        ["9,223,372,036,854,775,808", /the largest is 9223372036854775807/],
        ["https://shop.example/international/notifications", /no part of .* is an ID/],
        ["https://shop.example/9223372036854775808", /no part of .* is an ID/],
        ["https://1541815603606036480.example/", /no part of .* is an ID/],
        ["https://shop.example/%zz", /no part of .* is an ID/],
        ["123e4567-e89b-12d3-a456-426614174000", /it has version 1, not 8/],
        ["2acb423e-c42f-8400-0000-000000000000", /it does not have the variant of RFC 9562/],
        ["2acb423e-c42f-8400-8000-000000000001", /its last 59 bits are not 0/],
        [`{${UUID}`, /is not the text of an ID/],
    ]) {
        assert.throws(() => readId(pasted), (error) => error instanceof RangeError && message.test(error.message), pasted);
    }
});

test("the UUID of every ID leads back to it, and sorts like it", () => {
    const all = [...ids.map(({ id }) => BigInt(id)), 0n, 1n, MAX_ID].sort((a, b) => (a < b ? -1 : Number(a > b)));
    const uuids = all.map(toUuid);
    assert.deepEqual(uuids.map(fromUuid), all);
    assert.deepEqual([...uuids].sort(), uuids);
    assert.ok(uuids.every(isUuid));
});

const suggested = (id) => readings(BigInt(id), BigInt(Date.now())).find(({ verdict }) => verdict === "likely")?.name;

test("numbers that no system has issued suggest no layout", () => {
    const future = encode({ at: Date.now() + 3 * 86_400_000, workerId: 7, sequence: 9 });
    for (const id of [
        MAX_ID, // The largest bigint. In layout uid-generator, its time has passed.
        MAX_ID - 1n,
        2n ** 62n,
        2n ** 53n - 1n,
        2n ** 31n - 1n,
        9_000_000_000_000_000_000n,
        9_999_999_999_999_999n,
        123_456_789_012_345n, // In January 1970 for Mastodon.
        1_000_000_000n,
        0n,
    ]) {
        assert.equal(suggested(id), undefined, `${id}`);
    }
    assert.notEqual(suggested(future), "twitter");
});

test("the largest worker ID and sequence are suggested nevertheless", () => {
    const at = "2024-06-01T12:34:56.780Z";
    const largest = { sonyflake: [0, 65_535, 255], twitter: [0, 1_023, 4_095], mastodon: [0, 0, 65_535] };
    for (const [name, [datacenterId, workerId, sequence]] of Object.entries(largest)) {
        const reading = readings(encode({ at, datacenterId, workerId, sequence }, name), BigInt(Date.now()));
        const { verdict } = reading.find((found) => found.name === name);
        assert.ok(["likely", "possible"].includes(verdict), `${name}: ${verdict}`);
    }
});
