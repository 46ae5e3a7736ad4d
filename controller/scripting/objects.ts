import { type Static, type TObject, type TSchema, Type } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { Default, Errors } from "typebox/value";
import { AppError } from "../../common/errors.ts";
import { HTTP_WARNINGS_MAX } from "../../common/limits.ts";
import { requireWellFormed, requireWellFormedWithin } from "../turns/well-formed.ts";
import { ignoredName } from "../../common/text/unknown.ts";
import type { Value } from "../../common/value.ts";
import type { Principal } from "../areas/permissions/index.ts";
import type { HostCall, HostFunctionName, ScriptHost, ScriptKind, ScriptLanguage } from "./types.ts";

export interface HostParameter {
  readonly name: string;
  readonly schema: TSchema;
  readonly optional?: boolean;
  /** Takes all remaining arguments as a list. */
  readonly rest?: boolean;
}

/** Data about the calling run, passed to a host function. */
export interface HostContext {
  /** The rights of the script. Scripts started with this principal count as one level deeper. */
  readonly principal: Principal;
  readonly kind: ScriptKind;
  /** `/path.js:line:column` of the call, for functions that are `positioned`. */
  readonly at: string;
  readonly signal: AbortSignal;
  /** Adds an entry to the script's console log. */
  readonly log: (level: number, message: string) => void;
  /** Subject of the run, for the functions of its own kind. */
  readonly about?: unknown;
  /** Makes another host call in the same run. */
  readonly call: (name: string, args: readonly Value[]) => Promise<Value | undefined>;
}

/** One function, described once for its checks, its types and its documentation. */
export interface HostFunction {
  readonly name: string;
  readonly summary: string;
  readonly parameters: readonly HostParameter[];
  readonly returns: string;
  /** A complete script that runs. */
  readonly example: string;
  /** True if it changes data and no service records that change: then an audit entry of the run reports it. */
  readonly changes?: boolean;
  /** True if it receives the position of the call. */
  readonly positioned?: boolean;
  readonly call: (context: HostContext, ...args: never[]) => Promise<Value | undefined>;
}

export interface HostObject {
  readonly name: string;
  readonly summary: string;
  /** Kinds of scripts that have the object; all if absent. */
  readonly kinds?: readonly ScriptKind[];
  /** Language whose texts have the object; all if absent. */
  readonly language?: ScriptLanguage;
  /**
   * True if the functions run inside the script's own virtual machine, from code that is loaded with the script. They
   * make no host call; this entry only documents them.
   */
  readonly isLocal?: boolean;
  readonly functions: readonly HostFunction[];
}

type Argument<P extends HostParameter> = P extends { readonly rest: true }
  ? readonly Static<P["schema"]>[]
  : P extends { readonly optional: true }
    ? Static<P["schema"]> | undefined
    : Static<P["schema"]>;

type Arguments<P extends readonly HostParameter[]> = { [K in keyof P]: Argument<P[K]> };

type Definition<P extends readonly HostParameter[]> = Omit<HostFunction, "parameters" | "call"> & {
  readonly parameters: P;
  readonly call: (context: HostContext, ...args: Arguments<P>) => Promise<Value | undefined>;
};

/** Infers the argument types of a host function from its parameters. */
export function hostFunction<const P extends readonly HostParameter[]>(definition: Definition<P>): HostFunction {
  return definition as unknown as HostFunction;
}

/**
 * A function that existing scripts call but that does nothing here. Every caller gets the reason, with or without
 * rights.
 */
export function refusedFunction(
  name: string,
  { object, why, example }: { readonly object: string; readonly why: string; readonly example: string },
): HostFunction {
  const whole = `${object}.${name}`;
  return hostFunction({
    name,
    summary: `Refused: ${why}`,
    parameters: [{ name: "arguments", schema: Type.Unknown(), rest: true }],
    returns: "nothing",
    example: `try { ${whole}(${example}) } catch (error) { OUTPUT = error.message }`,
    call: () => Promise.reject(new AppError("unsupported", `${whole} is not offered: ${why}.`)),
  });
}

/** The level `warn` of console logs. */
const WARNING_LEVEL = 3;

/**
 * Returns the members that a schema names, with its defaults, as HTTP reads them. Others are ignored with a warning in
 * the script's console log. Throws `AppError("invalid")` that names the wrong member.
 */
export function membersOf<S extends TObject>(schema: S, given: object, { log }: Pick<HostContext, "log">): Static<S> {
  const known = Object.keys(schema.properties);
  const ignored = Object.keys(given).filter((name) => !Object.hasOwn(schema.properties, name));
  for (const name of ignored.slice(0, HTTP_WARNINGS_MAX)) log(WARNING_LEVEL, ignoredName(name, known));
  const named = known.filter((name) => name in given);
  const members = Object.fromEntries(named.map((name) => [name, (given as Readonly<Record<string, unknown>>)[name]]));
  const value: unknown = Default(schema, members);
  const [fault] = Errors(schema, value);
  const member = fault?.instancePath.slice(1).replaceAll("/", ".") || "The object";
  if (fault) throw new AppError("invalid", `${member} ${fault.message}.`);
  for (const [name, text] of Object.entries(value as object)) requireWellFormedWithin(name, text);
  return value as Static<S>;
}

/** Form in which `/rule/funcs` and `/trigger/funcs` return a function. */
export interface FunctionDescription {
  readonly name: string;
  readonly object: string;
  readonly summary: string;
  readonly parameters: {
    readonly name: string;
    readonly type: string;
    readonly title: string;
    readonly optional: boolean;
    readonly list: boolean;
  }[];
  readonly returns: string;
  readonly example: string;
  /** Absent: all languages. */
  readonly language?: ScriptLanguage;
}

/** One run, as its host objects see it. */
export interface HostRun extends Pick<HostContext, "principal" | "kind" | "log" | "about"> {
  /** Called before the first change that the run's audit entry will report. */
  readonly beforeChange: () => Promise<void>;
  /** Loads the script at a path that another script requires. */
  readonly load: (path: string, from: string) => Promise<{ readonly name: string; readonly source: string }>;
}

/** Answers the host calls of one run. */
export interface BoundHost extends ScriptHost {
  /** Principal of the host calls, one script level deeper; not shared with other runs. */
  readonly principal: Principal;
  /** Names of the functions by which the run changed data that no service records itself. */
  readonly changed: ReadonlySet<string>;
}

interface Known {
  readonly object: HostObject;
  readonly declared: HostFunction;
  readonly validators: readonly Validator[];
}

/** All host objects that areas declare. */
export class HostObjects {
  readonly #functions = new Map<string, Known>();

  constructor(objects: readonly HostObject[]) {
    for (const object of objects)
      for (const declared of object.functions) this.#add(wholeName(object, declared), { object, declared });
  }

  #add(name: string, { object, declared }: Omit<Known, "validators">): void {
    if (this.#functions.has(name)) throw new Error(`The host function ${name} is declared twice.`);
    const validators = declared.parameters.map(({ schema }) => Compile(schema));
    this.#functions.set(name, { object, declared, validators });
  }

  /** Names for the engine. */
  get names(): readonly HostFunctionName[] {
    const called = Array.from(this.#functions.values()).filter(({ object }) => !object.isLocal);
    return called.map(({ object, declared }) => ({
      object: object.name,
      name: declared.name,
      positioned: declared.positioned === true,
    }));
  }

  /** Sorted by object and name. */
  described(kind: ScriptKind): readonly FunctionDescription[] {
    return [...this.#functions]
      .filter(([, { object }]) => isFor(object, kind))
      .map(([name, known]) => description(name, known))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Binds the host functions to one run. */
  bind(run: HostRun): BoundHost {
    const principal = { ...run.principal, scriptDepth: (run.principal.scriptDepth ?? 0) + 1 };
    const changed = new Set<string>();
    const call = async ({ name, args, at = "", signal }: HostCall): Promise<Value | undefined> => {
      requireUnderWay(name, signal);
      if (name === "require") return run.load(String(args[0]), String(args[1]));
      const known = this.#known(name, run.kind);
      const checked = argumentsOf(name, known, args);
      if (known.declared.changes) {
        await run.beforeChange();
        requireUnderWay(name, signal);
        changed.add(name);
      }
      const context: HostContext = {
        principal,
        kind: run.kind,
        at,
        signal,
        log: run.log,
        about: run.about,
        call: (other, given) => call({ name: other, args: given, at, signal }),
      };
      return known.declared.call(context, ...(checked as never[]));
    };
    return { call, principal, changed };
  }

  #known(name: string, kind: ScriptKind): Known {
    const known = this.#functions.get(name);
    if (known && !known.object.isLocal && isFor(known.object, kind)) return known;
    throw new AppError("unsupported", `There is no function ${name} for scripts of the kind ${kind}.`);
  }
}

/** Throws if the run is over: a host call must not begin then. */
function requireUnderWay(name: string, signal: AbortSignal): void {
  if (signal.aborted) throw new AppError("cancelled", `${name} was not called: its script is over.`);
}

/** Functions of an object without a name are global. */
function wholeName({ name }: HostObject, declared: HostFunction): string {
  return name === "" ? declared.name : `${name}.${declared.name}`;
}

function isFor({ kinds }: HostObject, kind: ScriptKind): boolean {
  return kinds === undefined || kinds.includes(kind);
}

function argumentsOf(name: string, { declared, validators }: Known, args: readonly Value[]): readonly unknown[] {
  return declared.parameters.map((parameter, at) => {
    const given = parameter.rest ? args.slice(at) : [args[at]];
    const values = given.map((value) => (value === null && parameter.optional ? undefined : value));
    for (const value of values) {
      if (value === undefined && parameter.optional) continue;
      if (value === undefined) throw new AppError("invalid", `${name} needs ${parameter.name}.`);
      const [fault] = validators[at]?.Errors(value) ?? [];
      if (fault) throw new AppError("invalid", `${name}: ${parameter.name}${fault.instancePath} ${fault.message}.`);
      if (isText(parameter.schema)) requireWellFormed(`${name}: ${parameter.name}`, value as string);
    }
    return parameter.rest ? values : values[0];
  });
}

function isText(schema: TSchema): boolean {
  return (schema as { readonly type?: string }).type === "string";
}

function description(name: string, { object, declared }: Known): FunctionDescription {
  const parameters = declared.parameters.map(({ name: parameter, schema, optional = false, rest = false }) => {
    const { type = "any", description: title = "" } = schema as {
      readonly type?: string;
      readonly description?: string;
    };
    return { name: parameter, type, title, optional, list: rest };
  });
  const { summary, returns, example } = declared;
  const { name: of, language } = object;
  return { name, object: of, summary, parameters, returns, example, ...(language && { language }) };
}
