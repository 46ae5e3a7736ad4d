import type { TSchema } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { isAppError } from "../../../common/errors.ts";
import { HTTP_TURN_LIST_MAX_ITEMS } from "../../../common/limits.ts";
import type { ThreadSlices } from "../../turns/slices.ts";
import { assemble, Bracketed } from "../body/fields.ts";
import { isLargeJson, noteLargeJson } from "../../../common/json-decoder.ts";
import { looksLikeJson, parseJson } from "../../../common/json.ts";
import { requireWellFormed } from "../../turns/well-formed.ts";
import type { Shape } from "./shape.ts";
import { NO_LARGE_VALUES, noLargeValues, type LargeValues } from "./large-values.ts";

/** Items of a long list, or members of a large object, between two checks of the time slice. */
export const ITEMS_PER_LOOK = 32;

export type Slicing = Pick<ThreadSlices, "isOverNow" | "pause">;

/** Marks a value that was not sent. */
export const ABSENT = Symbol("absent");

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;
const TRUE = new Set(["true", "1", "on", "yes"]);
const FALSE = new Set(["false", "0", "off", "no"]);
const validators = new WeakMap<TSchema, Validator>();

export interface CoerceOptions {
  readonly exact?: boolean;
  /** JSON texts where the schema wants a value, and values where it wants a text. */
  readonly texts?: JsonTexts;
}

/**
 * Makes one value from everything that was sent under one name, and converts it to what the schema wants, if possible.
 * Does not validate it. The texts `undefined` and `null` mean that nothing was sent, unless `exact` is true.
 */
export function coerceMember(
  schema: TSchema,
  values: readonly unknown[],
  { exact = false, texts = new JsonTexts() }: CoerceOptions = {},
): unknown {
  const value = gather(schema, values, exact);
  const result = value === ABSENT ? ABSENT : coerce(schema, value, texts);
  return result === ABSENT && "default" in schema ? schema.default : result;
}

/** Everything that was sent under one name, as one value; `ABSENT` if nothing was sent. */
export function gather(schema: TSchema, values: readonly unknown[], exact: boolean): unknown {
  const bracketed = values.filter((value) => value instanceof Bracketed);
  if (bracketed.length > 0) return assemble(bracketed);
  const sent = values.filter((value) => value !== undefined && value !== null && (exact || !isAbsentWord(value)));
  if (sent.length === 0) return ABSENT;
  return wantsList(schema) && sent.length > 1 ? sent : sent[0];
}

/** Words that clients send for missing arguments. */
export const ABSENT_WORDS: readonly string[] = ["undefined", "null"];

export function isAbsentWord(value: unknown): boolean {
  return typeof value === "string" && ABSENT_WORDS.includes(value);
}

function wantsList(schema: TSchema): boolean {
  const { type, anyOf } = schema as Shape;
  return type === "array" || (anyOf?.some(wantsList) ?? false);
}

export function coerce(schema: TSchema, value: unknown, texts: JsonTexts): unknown {
  const shape = schema as Shape;
  if (shape.anyOf !== undefined) return coerceUnion(shape.anyOf, value, texts);
  switch (shape.type) {
    case "string":
      return toText(value, texts);
    case "integer":
    case "number":
      return toNumber(value, shape.type === "integer");
    case "boolean":
      return toBoolean(value);
    case "array":
      return toList(shape, value, texts);
    case "object":
      return toObject(shape, value, texts);
    default:
      return value;
  }
}

function coerceUnion(variants: readonly TSchema[], value: unknown, texts: JsonTexts): unknown {
  const scalarFits = variants.some((variant) => typeof value !== "object" && conforms(variant, value));
  if (scalarFits) return typeof value === "string" ? toText(value, texts) : value;
  for (const variant of variants) {
    const candidate = texts.atOnce(() => coerce(variant, value, texts));
    if (candidate !== ABSENT && conforms(variant, candidate)) return candidate;
  }
  return value === "" ? ABSENT : value;
}

/** True if the value fits the schema. The check is compiled once. */
export function conforms(schema: TSchema, value: unknown): boolean {
  return validatorOf(schema).Check(value);
}

export function validatorOf(schema: TSchema): Validator {
  let validator = validators.get(schema);
  if (validator === undefined) {
    validator = Compile(schema);
    validators.set(schema, validator);
  }
  return validator;
}

function toText(value: unknown, texts: JsonTexts): unknown {
  if (typeof value === "string") requireWellFormed(texts.member, value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  // Clients often send JSON itself for a member that is documented as JSON text.
  return typeof value === "object" && value !== null ? texts.textOf(value) : value;
}

function toNumber(value: unknown, integer: boolean): unknown {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value !== "string") return value;
  const text = value.trim();
  if (text === "") return ABSENT;
  if (!NUMBER.test(text)) return value;
  const number = Number(text);
  return integer && !Number.isSafeInteger(number) ? value : number;
}

function toBoolean(value: unknown): unknown {
  if (value === 1 || value === 0) return value === 1;
  if (typeof value !== "string") return value;
  const word = value.trim().toLowerCase();
  if (word === "") return ABSENT;
  if (TRUE.has(word)) return true;
  return FALSE.has(word) ? false : value;
}

function toList(shape: Shape, value: unknown, texts: JsonTexts): unknown {
  const parsed = texts.valueOf(value);
  if (parsed === "") return [];
  const list: readonly unknown[] = Array.isArray(parsed) ? parsed : [parsed];
  const items = shape.items as TSchema | undefined;
  if (items === undefined) return list;
  const isLarge = list.length > HTTP_TURN_LIST_MAX_ITEMS || list.some(isLargeJson) || isLargeJson(parsed);
  if (isLarge && texts.takesLists) return texts.later(list, items);
  const made = list.map((item) => coerce(items, item, texts)).filter((item) => item !== ABSENT);
  if (isLarge) noteLargeJson(made);
  return made;
}

function toObject(shape: Shape, value: unknown, texts: JsonTexts): unknown {
  const parsed = texts.valueOf(value);
  if (parsed === "" || parsed === "[object Object]") return ABSENT;
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return value;
  if (takesAnyMembers(shape)) return parsed;
  const given = parsed as Readonly<Record<string, unknown>>;
  const result: Record<string, unknown> = {};
  if (isLargeJson(parsed)) {
    noteLargeJson(result);
    if (!takesOtherNames(shape)) {
      const names = Object.keys(shape.properties ?? {}).filter((name) => Object.hasOwn(given, name));
      for (const name of names) addMember(result, { shape, name, value: given[name] }, texts);
      return withDefaults(shape, result);
    }
    if (texts.takesLists) return texts.laterMembers(given, shape, result);
  }
  for (const name of Object.keys(given)) addMember(result, { shape, name, value: given[name] }, texts);
  return withDefaults(shape, result);
}

interface GivenMember {
  readonly shape: Shape;
  readonly name: string;
  readonly value: unknown;
}

function addMember(result: Record<string, unknown>, { shape, name, value }: GivenMember, texts: JsonTexts): void {
  if (name === "__proto__") return;
  const schema = schemaOfMember(shape, name);
  if (schema === undefined) return;
  const coerced = schema === true ? value : value === null ? nullOf(schema) : coerce(schema, value, texts);
  if (coerced !== ABSENT) result[name] = coerced;
}

/** True if members with names outside of `properties` are kept. */
function takesOtherNames({ patternProperties, additionalProperties: more }: Shape): boolean {
  return patternProperties !== undefined || more === true || (typeof more === "object" && more !== null);
}

/** True if the schema names no member and sets no schema for any: every object fits unchanged. */
export function takesAnyMembers({ properties, patternProperties }: Shape): boolean {
  const [pattern, ...more] = Object.entries(patternProperties ?? {});
  return (
    properties === undefined && more.length === 0 && pattern?.[0] === "^.*$" && Object.keys(pattern[1]).length === 0
  );
}

function nullOf(schema: TSchema): unknown {
  return conforms(schema, null) ? null : ABSENT;
}

function withDefaults(shape: Shape, result: Record<string, unknown>): unknown {
  for (const [name, schema] of Object.entries(shape.properties ?? {})) {
    if (!(name in result) && "default" in schema) result[name] = schema.default;
  }
  return result;
}

/** The schema of a member, `true` for any value, undefined for a member to leave out. */
export function schemaOfMember(shape: Shape, name: string): TSchema | true | undefined {
  if (shape.properties !== undefined && Object.hasOwn(shape.properties, name)) return shape.properties[name];
  for (const [pattern, schema] of Object.entries(shape.patternProperties ?? {})) {
    if (pattern === "^.*$" || new RegExp(pattern).test(name)) return schema;
  }
  const more = shape.additionalProperties;
  if (typeof more === "object" && more !== null) return more as TSchema;
  return more === true ? true : undefined;
}

/**
 * Decodes JSON texts that are where a list or an object is wanted. The first `charactersAtOnce` characters of them are
 * decoded immediately. The rest is decoded by `decodeMissing`, in slices; then the values must be coerced again.
 */
export class JsonTexts {
  /** Name of the input member that is being coerced, for errors. */
  member = "";
  #leftAtOnce: number;
  #takesLists: boolean;
  /** Made for the first large value: most inputs have none. */
  #large: LargeValues | undefined;

  /** Without `charactersAtOnce`, every text is decoded or written, and every list coerced, immediately. */
  constructor(charactersAtOnce = Number.POSITIVE_INFINITY) {
    this.#leftAtOnce = charactersAtOnce;
    this.#takesLists = charactersAtOnce !== Number.POSITIVE_INFINITY;
  }

  get #values(): LargeValues {
    return (this.#large ??= noLargeValues());
  }

  /** True if long lists are left for `coerceLists`. */
  get takesLists(): boolean {
    return this.#takesLists;
  }

  /** Runs work whose result is needed before `coerceLists`: it leaves no list for later. */
  atOnce<T>(work: () => T): T {
    const before = this.#takesLists;
    this.#takesLists = false;
    try {
      return work();
    } finally {
      this.#takesLists = before;
    }
  }

  /** A copy of the list. `coerceLists` will convert its items to the schema. */
  later(list: readonly unknown[], items: TSchema): readonly unknown[] {
    const copy = [...list];
    noteLargeJson(copy);
    this.#values.lists.push({ member: this.member, list: copy, items });
    return copy;
  }

  /** The object that `coerceLists` will fill with the members, converted to the schema. */
  laterMembers(
    given: Readonly<Record<string, unknown>>,
    shape: Shape,
    result: Record<string, unknown>,
  ): Record<string, unknown> {
    this.#values.objects.push({ member: this.member, given, shape, result });
    return result;
  }

  /** Converts the items of long lists and the members of large objects to their schemas. */
  async coerceLists(slices: Slicing): Promise<void> {
    while (this.#values.lists.length > 0 || this.#values.objects.length > 0) {
      await this.#coerceItems(slices);
      await this.#coerceMembers(slices);
    }
  }

  async #coerceItems(slices: Slicing): Promise<void> {
    for (let next = this.#values.lists.pop(); next !== undefined; next = this.#values.lists.pop()) {
      const { member, list, items } = next;
      this.member = member;
      let kept = 0;
      for (const item of list) {
        const coerced = coerce(items, item, this);
        if (coerced !== ABSENT) list[kept++] = coerced;
        if (kept % ITEMS_PER_LOOK === 0 && slices.isOverNow()) await slices.pause();
      }
      list.length = kept;
    }
  }

  async #coerceMembers(slices: Slicing): Promise<void> {
    for (let next = this.#values.objects.pop(); next !== undefined; next = this.#values.objects.pop()) {
      const { member, given, shape, result } = next;
      this.member = member;
      for (const [at, name] of Object.keys(given).entries()) {
        addMember(result, { shape, name, value: given[name] }, this);
        if (at % ITEMS_PER_LOOK === 0 && slices.isOverNow()) await slices.pause();
      }
      withDefaults(shape, result);
    }
  }

  /** True if `coerceLists`, `decodeMissing` or `writeMissing` has something to do. */
  get areOpen(): boolean {
    const { lists, objects } = this.#large ?? NO_LARGE_VALUES;
    return this.areMissing || lists.length > 0 || objects.length > 0;
  }

  /** True if the coerced value has a text that is not decoded yet, or a value whose text is not written yet. */
  get areMissing(): boolean {
    const { missing, unwritten } = this.#large ?? NO_LARGE_VALUES;
    return missing.size > 0 || unwritten.size > 0;
  }

  /** The JSON text of a value. A large value is returned itself until `writeMissing` has written its text. */
  textOf(value: object): unknown {
    const known = this.#large?.written.get(value);
    if (known !== undefined) return known;
    if (this.#leftAtOnce === Number.POSITIVE_INFINITY || !isLargeJson(value)) return JSON.stringify(value);
    this.#values.unwritten.add(value);
    return value;
  }

  /** Writes the texts of the large values that `textOf` was called for. */
  async writeMissing(write: (value: object) => Promise<string>): Promise<void> {
    const values = [...this.#values.unwritten];
    this.#values.unwritten.clear();
    for (const value of values) this.#values.written.set(value, await write(value));
  }

  /** The value of a JSON text. Any other value is returned unchanged. */
  valueOf(value: unknown): unknown {
    if (typeof value !== "string" || !looksLikeJson(value) || value === "[object Object]") return value;
    if (this.#large?.decoded.has(value)) return this.#large.decoded.get(value);
    if (value.length > this.#leftAtOnce) {
      this.#values.missing.add(value);
      return value;
    }
    this.#leftAtOnce -= value.length;
    return valueOr(value, () => parseJson(value));
  }

  /** Decodes the texts that `valueOf` left. Texts inside them may be missing afterwards. */
  async decodeMissing(decode: (text: string) => Promise<unknown>): Promise<void> {
    const texts = [...this.#values.missing];
    this.#values.missing.clear();
    for (const text of texts) {
      const decoded = await decode(text).then(
        (value) => () => value,
        (error: unknown) => (): never => {
          throw error;
        },
      );
      this.#values.decoded.set(text, valueOr(text, decoded));
    }
  }
}

/** Returns the text itself if it is no JSON. The validation that follows reports this in the words of the schema. */
function valueOr(text: string, parse: () => unknown): unknown {
  try {
    return parse();
  } catch (error) {
    if (isAppError(error, "syntax")) return text;
    throw error;
  }
}
