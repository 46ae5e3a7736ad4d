import { AppError } from "../../../../common/errors.ts";
import { RULE_CACHE_MAX_ENTRIES } from "../../../../common/limits.ts";
import type { ClassView, Objects } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { SupplementedRule } from "../store.ts";
import type { Rule } from "../types.ts";
import { NO_TARGET, targetThen } from "./classes.ts";
import { compileRule, ruleClass, type CompiledRule } from "./compile.ts";

/** Compiles rules for the current state of their classes. Caches `RULE_CACHE_MAX_ENTRIES` compiled rules. */
export class CompiledRules {
  readonly #objects: Pick<Objects, "catalog">;
  /** By tenant, key, digest and state of the classes; the oldest is removed first. */
  readonly #compiled = new Map<string, CompiledRule>();

  constructor(objects: Pick<Objects, "catalog">) {
    this.#objects = objects;
  }

  /** `AppError("not_found")` if the class of the rule does not exist; otherwise the errors of `compileRule`. */
  async of(principal: Principal, stored: SupplementedRule): Promise<Rule> {
    const catalog = await this.#objects.catalog(principal);
    const name = [principal.tenant, stored.key, stored.digest, catalog.revision].join("\n");
    let compiled = this.#compiled.get(name);
    if (!compiled) {
      const path = ruleClass(stored.text);
      const target =
        path === "" ? NO_TARGET : targetThen(await presentClass(this.#objects, principal, path), stored.supplements);
      compiled = compileRule(stored.text, { ...target, supplements: stored.supplements });
      this.#remember(name, compiled);
    }
    return { ...stored, ...compiled };
  }

  clear(): void {
    this.#compiled.clear();
  }

  #remember(name: string, compiled: CompiledRule): void {
    const oldest = this.#compiled.keys().next();
    if (this.#compiled.size >= RULE_CACHE_MAX_ENTRIES && !oldest.done) this.#compiled.delete(oldest.value);
    this.#compiled.set(name, compiled);
  }
}

/** The class in its current state. `AppError("not_found")` if it does not exist. */
export async function presentClass(
  objects: Pick<Objects, "catalog">,
  principal: Principal,
  path: string,
): Promise<ClassView> {
  const view = (await objects.catalog(principal)).get(path.replace(/\/+$/, ""));
  if (!view) throw classNotFound(path);
  return view;
}

export function classNotFound(path: string): AppError {
  return new AppError("not_found", `class : ${path} not find !`);
}
