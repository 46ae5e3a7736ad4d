import { Type, type TSchema } from "typebox";
import { describe, expect, test } from "vitest";
import { HTTP_TURN_LIST_MAX_ITEMS } from "../../../common/limits.ts";
import { isLargeJson } from "../../../common/json-decoder.ts";
import { decodeJson } from "../../turns/decoding.ts";
import { slicesOfOneStep } from "../../../test/helpers/time/slices.ts";
import { fieldsInSlices } from "./body.ts";
import { JsonTexts } from "../input/coerce.ts";
import { readInput, readLargeInput, type Sources } from "../input/input.ts";

const MANY = 5 * HTTP_TURN_LIST_MAX_ITEMS;
const AnyMembers = Type.Record(Type.String(), Type.Unknown());
const input = Type.Object({
  text: Type.Optional(Type.String()),
  any: Type.Optional(AnyMembers),
  rows: Type.Optional(Type.Array(AnyMembers, { minItems: 1 })),
  jobs: Type.Optional(
    Type.Array(
      Type.Object({ name: Type.String(), time: Type.Integer({ default: 5 }), on: Type.Optional(AnyMembers) }),
      {
        maxItems: MANY,
      },
    ),
  ),
  words: Type.Optional(Type.Record(Type.String(), Type.String())),
  tables: Type.Optional(Type.Record(Type.String(), Type.Record(Type.String(), Type.Integer()))),
  either: Type.Optional(Type.Union([Type.Array(Type.Integer()), AnyMembers])),
  few: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { maxProperties: MANY })),
});

const keys = (count: number, valueOf: (at: number) => unknown = (at) => at): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, valueOf(at)]));
const list = <T>(count: number, itemOf: (at: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, at) => itemOf(at));

function sourcesOf(fields: Sources["body"]): Sources {
  return { path: new Map(), query: new Map(), body: fields, bodyIsJson: true };
}

/** As a call reads a large body, with the pauses behind its decoding. */
async function read(schema: TSchema, text: string) {
  const { seen, slices } = slicesOfOneStep();
  const value = (await decodeJson(text, { slices, hold: () => undefined })) as object;
  seen.pauses = 0;
  const sources = sourcesOf(await fieldsInSlices(value, slices));
  const texts = new JsonTexts(HTTP_TURN_LIST_MAX_ITEMS);
  const reading = async () => readLargeInput({ input: schema as never }, sources, { texts, work: { slices } });
  const read = await reading().catch((error: unknown) => ({
    error,
  }));
  return { read, pauses: seen.pauses };
}

/** The same at once. */
function readAtOnce(schema: TSchema, text: string): unknown {
  const fields = new Map(Object.entries(JSON.parse(text) as object).map(([name, value]) => [name, [value]]));
  try {
    return readInput({ input: schema as never }, sourcesOf(fields));
  } catch (error) {
    return { error };
  }
}

/** Each with the pauses that it takes at least, behind its decoding and the look at its names. */
const large: readonly (readonly [string, object, number])[] = [
  ["members of an object that takes any", { any: keys(MANY) }, 1],
  ["an object that stands for a list of one", { rows: keys(MANY) }, 1],
  ["members that are not known", { jobs: { name: "a", ...keys(MANY) } }, 1],
  ["a text in place of which a list came", { text: list(MANY, (at) => `t${at}`) }, 50],
  ["a text in place of which an object came", { text: keys(MANY, (at) => [at, { at }]) }, 50],
  ["a text in place of which nested lists came", { text: [[list(MANY, (at) => [at])], { a: keys(MANY) }] }, 50],
  ["members that become texts", { words: keys(MANY) }, 50],
  ["members of members", { tables: { a: keys(MANY, String), b: keys(3) } }, 50],
  ["a list of large objects", { rows: list(5, () => keys(MANY)) }, 1],
  ["few items with large objects in them", { jobs: list(3, (at) => ({ name: at, on: keys(MANY) })) }, 1],
  ["many small items", { jobs: list(MANY, (at) => ({ name: `n${at}`, time: String(at) })) }, 50],
  ["many names", { text: "a", ...keys(MANY) }, 15],
  ["a list where a list or an object fits", { either: list(MANY, String) }, 50],
  ["an object where a list or an object fits", { either: keys(MANY) }, 1],
];

const unfit: readonly (readonly [string, object])[] = [
  ["a list that is too long", { jobs: list(MANY + 1, () => ({ name: "a" })) }],
  ["an object of too many members", { few: keys(MANY + 1) }],
  ["an item that does not fit", { rows: [...list(MANY, (at) => ({ at })), 7] }],
  ["an item that lacks a member", { jobs: [...list(MANY - 2, () => ({ name: "a" })), { time: 1 }] }],
  ["a member that does not fit", { tables: { a: keys(MANY, (at) => (at === MANY - 1 ? "no" : at)) } }],
  [
    "a member with a strange name",
    { words: { ...keys(MANY), "a/~b": { c: [null] } }, tables: { "a/~b": { ...keys(MANY), "~/": "x" } } },
  ],
  ["a small member beside a large one", { any: keys(MANY), rows: 7 }],
];

describe("large values", () => {
  test.each(large)("are made what the schema wants in slices, as they are at once: %s", async (_name, value, least) => {
    const text = JSON.stringify(value);
    const { read: made, pauses } = await read(input, text);
    expect(made).toEqual(readAtOnce(input, text));
    expect(made).not.toHaveProperty("error");
    expect(JSON.stringify(made)).toBe(JSON.stringify(readAtOnce(input, text)));
    expect(pauses).toBeGreaterThanOrEqual(least);
  });

  test.each(unfit)("are refused as they are at once: %s", async (_name, value) => {
    const text = JSON.stringify(value);
    const { read: refused } = await read(input, text);
    expect(refused).toHaveProperty("error");
    const { error } = refused as { error: Error };
    expect(error.message).toBe((readAtOnce(input, text) as { error: Error }).error.message);
  });
});

test.each<[member: string, value: object]>([
  ["jobs", { jobs: list(MANY, (at) => ({ name: at === MANY - 1 ? "\ud800" : "a" })), text: "a" }],
  ["words", { words: keys(MANY, () => "\udc00"), text: "a" }],
  ["named", { named: { a: "\ud800" } }],
])("half of a character within %s is refused with that name", async (member, value) => {
  const named = Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()]));
  const schema = Type.Object({ ...input.properties, named: Type.Optional(named) });
  const { read: refused } = await read(schema, JSON.stringify(value));
  expect((refused as { readonly error: Error }).error.message).toContain(`${member} has a lone surrogate`);
});

test("a decoder tells which values are large, by all that is in them", async () => {
  const { slices } = slicesOfOneStep();
  const text = JSON.stringify({ few: [1, 2], deep: [[list(MANY, (at) => at)]], many: keys(MANY) });
  const value = (await decodeJson(text, { slices, hold: () => undefined })) as Record<string, unknown[]>;
  expect([value, value["deep"], value["deep"]?.[0], value["many"], value["few"]].map(isLargeJson)).toEqual([
    true,
    true,
    true,
    true,
    false,
  ]);
});
