import type { TSchema } from "typebox";
import { AppError } from "../../../common/errors.ts";
import type { Value } from "../../../common/value.ts";
import { decodeJson, encodeJson } from "../../turns/decoding.ts";
import type { ThreadSlices } from "../../turns/slices.ts";
import { ABSENT, coerceMember, JsonTexts, validatorOf } from "./coerce.ts";
import type { Endpoint } from "../interface/endpoint.ts";
import type { Fields } from "../body/fields.ts";
import { hasLargeMember, problemsInSlices, type Problem } from "./problems.ts";

export interface Sources {
  readonly path: Fields;
  readonly query: Fields;
  readonly body: Fields;
  /** True if the body is JSON. In other sources the texts `null` and `undefined` mean that nothing was sent. */
  readonly bodyIsJson: boolean;
}

/** Members of an endpoint's input schema. */
export function membersOf(schema: TSchema): Readonly<Record<string, TSchema>> {
  return (schema as { readonly properties?: Readonly<Record<string, TSchema>> }).properties ?? {};
}

/** Names of the path parameters, including `*`. */
export function pathParameters(path: string): readonly string[] {
  return [...path.matchAll(/:([A-Za-z_]\w*)|(\*)$/g)].map((match) => match[1] ?? "*");
}

/** Makes the endpoint's input from everything that was sent. `AppError("invalid")` names the member at fault. */
export function readInput(
  endpoint: Pick<Endpoint, "input" | "body">,
  sources: Sources,
  texts: JsonTexts = new JsonTexts(),
): unknown {
  return checked(endpoint.input, coerced(endpoint, sources, texts));
}

/** The JSON texts within an input, and the slices of its call. */
export interface InputWork {
  readonly texts: JsonTexts;
  /** Has the slices for an input that is too large for one turn. Most inputs need none. */
  readonly work: { readonly slices: ThreadSlices };
}

/** As `readInput`; in slices if the input has long lists, or texts that are large JSON. */
export function readLargeInput(
  endpoint: Pick<Endpoint, "input" | "body">,
  sources: Sources,
  { texts, work }: InputWork,
): unknown {
  const input = coerced(endpoint, sources, texts);
  if (!texts.areOpen && !hasLargeMember(input)) return checked(endpoint.input, input);
  return completed(endpoint, sources, { input, texts, slices: work.slices });
}

async function completed(
  endpoint: Pick<Endpoint, "input" | "body">,
  sources: Sources,
  begun: {
    readonly input: Readonly<Record<string, unknown>>;
    readonly texts: JsonTexts;
    readonly slices: ThreadSlices;
  },
): Promise<unknown> {
  const { texts, slices } = begun;
  for (let { input } = begun; ; input = coerced(endpoint, sources, texts)) {
    await texts.coerceLists(slices);
    if (!texts.areMissing) return checkedInSlices(endpoint.input, input, slices);
    // A text inside another text is found after the outer one is decoded. It is shorter, so the loop ends.
    await texts.decodeMissing((text) => decodeJson(text, { slices }));
    await texts.writeMissing((value) => encodeJson(value as Value, slices));
  }
}

function coerced(
  endpoint: Pick<Endpoint, "input" | "body">,
  sources: Sources,
  texts: JsonTexts,
): Readonly<Record<string, unknown>> {
  const path = { fields: sources.path, exact: true };
  const query = { fields: sources.query, exact: false };
  const body = { fields: sources.body, exact: sources.bodyIsJson };
  // A free text that happens to be a JSON object must not decide what the call refers to.
  const order = endpoint.body === "text" ? [path, body, query] : [body, query, path];
  const input: Record<string, unknown> = {};
  for (const [name, schema] of memberList(endpoint.input)) {
    const value = firstPresent(schema, name, { order, texts });
    if (value !== ABSENT) input[name] = value;
  }
  return input;
}

function checked(schema: TSchema, input: unknown): unknown {
  const validator = validatorOf(schema);
  if (!validator.Check(input)) throw invalid(validator.Errors(input));
  return input;
}

async function checkedInSlices(
  schema: TSchema,
  input: Readonly<Record<string, unknown>>,
  slices: ThreadSlices,
): Promise<unknown> {
  const problems = await problemsInSlices(schema, input, slices);
  if (problems.length > 0) throw invalid(problems);
  return input;
}

type MemberList = readonly (readonly [name: string, schema: TSchema])[];

const memberLists = new WeakMap<TSchema, MemberList>();

function memberList(schema: TSchema): MemberList {
  let list = memberLists.get(schema);
  if (list === undefined) memberLists.set(schema, (list = Object.entries(membersOf(schema))));
  return list;
}

function firstPresent(
  schema: TSchema,
  name: string,
  {
    order,
    texts,
  }: { readonly order: readonly { readonly fields: Fields; readonly exact: boolean }[]; readonly texts: JsonTexts },
): unknown {
  texts.member = name;
  for (const { fields, exact } of order) {
    const values = fields.get(name);
    const value = values === undefined ? ABSENT : coerceMember(schema, values, { exact, texts });
    if (value !== ABSENT) return value;
  }
  return coerceMember(schema, []);
}

function invalid(problems: readonly Problem[]): AppError {
  const first = problems[0];
  if (first === undefined) return new AppError("invalid", "The input does not fit.");
  if (first.keyword === "required") {
    const names = first.params.requiredProperties.map((name) => fieldName(first.instancePath, name));
    return new AppError("invalid", `${names.join(", ")} ${names.length === 1 ? "is" : "are"} missing.`, {
      details: { fields: names },
    });
  }
  const field = fieldName(first.instancePath);
  return new AppError("invalid", `${field} ${expectation(first, problems)}.`, { details: { fields: [field] } });
}

function expectation(first: Problem, problems: readonly Problem[]): string {
  if (first.keyword !== "const") return first.message;
  const allowed = problems.flatMap((problem) =>
    problem.keyword === "const" && problem.instancePath === first.instancePath
      ? [String(problem.params.allowedValue)]
      : [],
  );
  return `must be ${allowed.length === 1 ? "" : "one of "}${allowed.join(", ")}`;
}

/** Converts `/hosts/0/port` to `hosts[0].port`. */
function fieldName(pointer: string, member?: string): string {
  const steps = pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  if (member !== undefined) steps.push(member);
  const text = steps.map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`)).join("");
  return text === "" ? "The input" : text.replace(/^\./, "");
}
