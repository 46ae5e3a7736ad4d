import { setImmediate } from "node:timers/promises";
import { AppError, isAppError } from "../../../../common/errors.ts";
import {
  GROK_OWN_PATTERNS_MAX,
  GROK_PATTERN_CHANGE_ATTEMPTS_MAX,
  GROK_PATTERN_NAME_MAX_CHARACTERS,
  GROK_SAMPLE_MAX_CHARACTERS,
  GROK_STEPS_MAX,
} from "../../../../common/limits.ts";
import { newStamp, requireExpected, revisionOf, type Expected } from "../../../../common/revisions.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { Retry } from "../../../store/calls/retry.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import { GROK_PATTERNS } from "./known-patterns.ts";
import { compileGrok, patternsReached } from "./grok.ts";
import { NO_TIMES, timeText } from "../definitions/times.ts";
import { readPatterns, writePatterns, type PatternsState, type StoredPattern } from "./pattern-store.ts";

export interface NewPattern {
  readonly name: string;
  readonly pattern: string;
  /** A sample text that the pattern should match; empty: none. */
  readonly eg: string;
}

export interface NamedPattern extends NewPattern {
  readonly revision: string;
}

/** Values that a pattern captured from its sample, by name. */
export type SampleFields = Readonly<Record<string, string | number>>;

export interface WrittenPattern {
  /** Empty without a sample, and if the pattern does not match it. */
  readonly sample: SampleFields;
  readonly warnings: readonly string[];
}

/** A change of the patterns, made from those that are stored. */
interface Change<T> {
  readonly next: PatternsState["patterns"];
  readonly answer: T;
}

/**
 * Grok patterns of users, in addition to the standard set. Every use reads the store, so a change applies to later
 * records on every controller. A batch that was pinned before the change is parsed with its pinned patterns.
 */
export class PatternService {
  readonly #stores: Stores;
  readonly #runtime: Runtime;
  readonly #retry: Retry;

  constructor({ stores, runtime }: { readonly stores: Stores; readonly runtime: Runtime }) {
    this.#stores = stores;
    this.#runtime = runtime;
    this.#retry = new Retry(runtime);
  }

  /** Patterns of users, in the order of their names. */
  async list(principal: Principal): Promise<readonly NamedPattern[]> {
    requirePermission(principal, "rules:read");
    const { patterns } = await this.#read(principal);
    return Array.from(patterns, ([name, pattern]) => named(name, pattern));
  }

  /** A pattern of users or of the standard set. `AppError("not_found")` if there is none. */
  async find(principal: Principal, name: string): Promise<NamedPattern> {
    requirePermission(principal, "rules:read");
    const found = (await this.#read(principal)).patterns.get(name);
    if (found) return named(name, found);
    if (isStandard(name)) return named(name, { pattern: GROK_PATTERNS[name] ?? "", eg: "" });
    throw notFound(name);
  }

  /**
   * Inserts or replaces a pattern. A sample that does not match is a warning. `AppError("invalid")` if the pattern does
   * not compile; `conflict` if patterns that use it would not compile. Refuses a name of the standard set with
   * `conflict`, unless users had that pattern before it became a standard one.
   */
  async put(
    principal: Principal,
    { name, pattern, eg }: NewPattern,
    expected?: Expected,
  ): Promise<WrittenPattern & { readonly revision: string }> {
    requirePermission(principal, "rules:write");
    checkName(name);
    if (pattern === "") throw new AppError("invalid", "The pattern is empty.");
    return this.#change(principal, async ({ patterns }) => {
      if (isStandard(name) && !patterns.has(name)) throw standard(name);
      requireExpected(expected, `The pattern ${name}`, patterns.get(name));
      if (!patterns.has(name) && patterns.size >= GROK_OWN_PATTERNS_MAX)
        throw new AppError("too_large", `There are ${GROK_OWN_PATTERNS_MAX} patterns already.`);
      const stamp = newStamp(principal.user, this.#runtime);
      const next = new Map(patterns).set(name, { pattern, eg, stamp });
      const written = tried({ name, pattern, eg }, textsOf(next), this.#runtime.clock.nowMs());
      await checkUsers(name, textsOf(next));
      return { next, answer: { ...written, revision: stamp.revision } };
    });
  }

  /**
   * `AppError("not_found")` if there is no such pattern; `conflict` for a standard pattern, and if another pattern uses
   * it. Rules that use it fail from then on.
   */
  async remove(principal: Principal, name: string, expected?: Expected): Promise<void> {
    requirePermission(principal, "rules:write");
    await this.#change(principal, ({ patterns }) => {
      if (!patterns.has(name)) throw isStandard(name) ? standard(name) : notFound(name);
      requireExpected(expected, `The pattern ${name}`, patterns.get(name));
      const [user] = usersOf(name, textsOf(patterns));
      if (user !== undefined) throw new AppError("conflict", `The pattern ${user} uses ${name}: change that first.`);
      const next = new Map(patterns);
      next.delete(name);
      return Promise.resolve({ next, answer: undefined });
    });
  }

  /**
   * Stores the state that `make` returns. If another writer changed the patterns since they were read, reads and makes
   * the state again, up to `GROK_PATTERN_CHANGE_ATTEMPTS_MAX` times. Then `AppError("conflict")`.
   */
  async #change<T>({ tenant }: Principal, make: (before: PatternsState) => Promise<Change<T>>): Promise<T> {
    const { kv } = await this.#stores.tenant(tenant);
    for (let attempt = 0; attempt < GROK_PATTERN_CHANGE_ATTEMPTS_MAX; attempt++) {
      const before = await this.#retry.run(() => readPatterns(kv));
      const { next, answer } = await make(before);
      const state = { revision: before.revision, patterns: next };
      if (await writePatterns(kv, state, { retry: this.#retry, random: this.#runtime.random })) return answer;
    }
    throw new AppError("conflict", "Others change the patterns all the time: nothing was changed.");
  }

  async #read({ tenant }: Principal): Promise<PatternsState> {
    const { kv } = await this.#stores.tenant(tenant);
    return this.#retry.run(() => readPatterns(kv));
  }
}

/** Pattern texts by name. */
export function textsOf(patterns: PatternsState["patterns"]): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from(patterns, ([name, { pattern }]) => [name, pattern]));
}

function named(name: string, { stamp, ...texts }: StoredPattern): NamedPattern {
  return { name, ...texts, revision: revisionOf({ stamp }) };
}

function tried({ name, eg }: NewPattern, own: Readonly<Record<string, string>>, nowMs: number): WrittenPattern {
  const grok = compileGrok(`%{${name}}`, own);
  if (eg === "") return { sample: {}, warnings: [] };
  if (eg.length > GROK_SAMPLE_MAX_CHARACTERS)
    throw new AppError("too_large", `A sample has at most ${GROK_SAMPLE_MAX_CHARACTERS} characters.`);
  if (grok.steps(eg) > GROK_STEPS_MAX) {
    const warning = `The pattern ${name} was not tried on its sample of ${eg.length} characters, which takes too long.`;
    return { sample: {}, warnings: [warning] };
  }
  const sample = grok.match(eg, (text) => timeText(text, NO_TIMES, { timeMs: nowMs }));
  if (sample) return { sample, warnings: [] };
  return { sample: {}, warnings: [`The pattern ${name} does not match its sample: change one of the two.`] };
}

/** `AppError("conflict")` if another pattern that uses this one would no longer compile. */
async function checkUsers(name: string, own: Readonly<Record<string, string>>): Promise<void> {
  for (const user of usersOf(name, own)) {
    try {
      compileGrok(`%{${user}}`, own);
    } catch (error) {
      if (!isAppError(error)) throw error;
      throw new AppError("conflict", `The pattern ${user} uses ${name} and would not be usable: ${error.message}`, {
        cause: error,
      });
    }
    // A compilation takes milliseconds, so other work runs in between.
    await setImmediate();
  }
}

/** Names of other patterns that use this one, directly or through others. */
function usersOf(name: string, own: Readonly<Record<string, string>>): readonly string[] {
  return Object.keys(own).filter((other) => other !== name && name in patternsReached([`%{${other}}`], own));
}

function isStandard(name: string): boolean {
  return Object.hasOwn(GROK_PATTERNS, name);
}

function checkName(name: string): void {
  if (!/^[A-Za-z0-9_]+$/.test(name) || name.length > GROK_PATTERN_NAME_MAX_CHARACTERS || name === "__proto__")
    throw new AppError(
      "invalid",
      `A pattern's name has letters, digits and _, at most ${GROK_PATTERN_NAME_MAX_CHARACTERS}.`,
    );
}

function standard(name: string): AppError {
  return new AppError("conflict", `${name} is a pattern of the standard set, which stays as it is.`);
}

function notFound(name: string): AppError {
  return new AppError("not_found", `There is no pattern ${name}.`);
}
