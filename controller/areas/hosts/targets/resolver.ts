import { AppError } from "../../../../common/errors.ts";
import { TARGET_HOSTS_MAX, TARGET_NAMES_PER_QUERY } from "../../../../common/limits.ts";
import { isExpression, parseTarget, type Target } from "../../../../common/targets/index.ts";
import type { Value } from "../../../../common/value.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import type { Query } from "../../query/index.ts";
import { classPath, idOf } from "../store.ts";

export interface ResolvedHosts {
  /** Each host once: the named ones, and those that an expression matches and the principal sees. */
  readonly hosts: readonly string[];
  /** The named hosts. Not checked: a host of that name need not exist. */
  readonly named: readonly string[];
  /** One sentence for each expression that matches no host. */
  readonly warnings: readonly string[];
}

type Expression = Exclude<Target, { kind: "name" }>;

/** Finds the hosts that entries such as `web-1`, `tag:os/linux` and `where:domain = 'a.b'` mean now. */
export class HostTargets {
  readonly #query: Pick<Query, "rows">;

  constructor({ query }: { readonly query: Pick<Query, "rows"> }) {
    this.#query = query;
  }

  /**
   * Resolves a list of hosts, in the order of its entries. The hosts of an expression are sorted by name, and are those
   * that MQL would show to the principal. Only a list with an expression needs `hosts:read`. Throws the errors of
   * `parseTarget`, and `too_large` for more than `TARGET_HOSTS_MAX` hosts.
   */
  async hosts(principal: Principal, entries: readonly string[]): Promise<ResolvedHosts> {
    if (entries.some(isExpression)) requirePermission(principal, "hosts:read");
    const targets = [...new Set(entries)].map((entry) => ({ entry, target: parseTarget(entry) }));
    const hosts = new Set<string>();
    const named: string[] = [];
    const warnings: string[] = [];
    for (const { entry, target } of targets) {
      const found = target.kind === "name" ? [target.host] : await this.#matching(principal, target);
      if (target.kind === "name") named.push(target.host);
      if (found.length === 0) warnings.push(`${entry} matches no host now.`);
      for (const host of found) hosts.add(host);
      if (hosts.size > TARGET_HOSTS_MAX) throw tooManyHosts();
    }
    return { hosts: [...hosts], named, warnings };
  }

  /** Those of `hosts` that one of the expressions matches. Named hosts among the entries are ignored. */
  async among(
    principal: Principal,
    entries: readonly string[],
    hosts: readonly string[],
  ): Promise<ReadonlySet<string>> {
    requirePermission(principal, "hosts:read");
    const found = new Set<string>();
    for (const entry of new Set(entries)) {
      const target = parseTarget(entry);
      if (target.kind === "name") continue;
      for (let at = 0; at < hosts.length; at += TARGET_NAMES_PER_QUERY)
        for (const host of await this.#matching(principal, target, hosts.slice(at, at + TARGET_NAMES_PER_QUERY)))
          found.add(host);
    }
    return found;
  }

  /** Those of `hosts` that exist and that the principal sees. */
  async existing(principal: Principal, hosts: readonly string[]): Promise<ReadonlySet<string>> {
    requirePermission(principal, "hosts:read");
    const found = new Set<string>();
    for (let at = 0; at < hosts.length; at += TARGET_NAMES_PER_QUERY) {
      const some = hosts.slice(at, at + TARGET_NAMES_PER_QUERY);
      for (const host of await this.#select(principal, [amongIds(some)], some.map(idOf))) found.add(host);
    }
    return found;
  }

  #matching(principal: Principal, target: Expression, among?: readonly string[]): Promise<readonly string[]> {
    const { condition, values } = conditionOf(target);
    if (among === undefined) return this.#select(principal, [condition], values);
    return this.#select(principal, [amongIds(among), condition], [...among.map(idOf), ...values]);
  }

  async #select(
    principal: Principal,
    conditions: readonly string[],
    values: readonly Value[],
  ): Promise<readonly string[]> {
    const where = conditions.map((condition) => `(${condition})`).join(" AND ");
    const text = `SELECT host FROM ${classPath(principal)} WHERE ${where} LIMIT ${TARGET_HOSTS_MAX + 1}`;
    const rows = await this.#query.rows(principal, text, values);
    return rows.flatMap(({ host }) => (typeof host === "string" ? [host] : [])).sort();
  }
}

/** The condition of MQL that hosts of the expression fulfil, and the values of its placeholders. */
function conditionOf(target: Expression): { readonly condition: string; readonly values: readonly Value[] } {
  switch (target.kind) {
    case "tag":
      return { condition: "tags = ? OR tags LIKE ?", values: [target.path, `${target.path}/*`] };
    case "group":
      return { condition: "hostgroups = ?", values: [target.group] };
    case "pattern":
      return { condition: "host LIKE ?", values: [target.pattern] };
    case "where":
      return { condition: target.condition, values: [] };
  }
}

/** By ids, which the query reads directly. By names it would read all hosts that the other condition matches. */
function amongIds(hosts: readonly string[]): string {
  return `id IN (${hosts.map(() => "?").join(", ")})`;
}

function tooManyHosts(): AppError {
  return new AppError("too_large", `A list of hosts names and matches at most ${TARGET_HOSTS_MAX} hosts.`, {
    details: { limit: "TARGET_HOSTS_MAX" },
  });
}
