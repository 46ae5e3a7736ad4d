import { AppError } from "../../../common/errors.ts";
import { GROUP_CHANGE_ATTEMPTS_MAX } from "../../../common/limits.ts";
import { newStamp, type Stamp } from "../../../common/revisions.ts";
import type { Runtime } from "../../runtime.ts";
import { requireNoPartToken, type Principal } from "../permissions/index.ts";
import { Definitions } from "./definitions.ts";
import { type GivenChange, requireHoldingAll } from "./giving.ts";
import type { GroupStore, StampedChange, StoredChange } from "./store.ts";
import type { TenantDefinitions } from "./tenants.ts";

const MARK_BYTES = 12;

/** A change of definitions, and a function that makes the caller's answer after the change is stored. */
interface Change<T> {
  readonly change: StoredChange;
  readonly answer: (after: Definitions) => T;
}

/** Plans the change on the current definitions. Called again if another change came first. */
type Make<T> = (definitions: Definitions) => Change<T>;

interface Dependencies {
  readonly store: GroupStore;
  readonly current: Pick<TenantDefinitions, "of">;
  readonly runtime: Pick<Runtime, "clock" | "random">;
}

interface Writer {
  readonly tenant: string;
  /** The user; `undefined`: odp itself. */
  readonly by: string | undefined;
}

/**
 * Stores changes of groups and API permissions. A change is stored only if the definitions are still those it was
 * planned on.
 */
export class GroupChanges {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /**
   * For all changes by callers. Refuses a change of groups or API permissions with rights that the caller does not
   * have, before or after the change.
   */
  byCaller<T>(principal: Principal, make: Make<T>): Promise<T> {
    requireNoPartToken(principal);
    const check = (change: GivenChange): void => requireHoldingAll(principal, change);
    return this.#written({ tenant: principal.tenant, by: principal.user }, make, check);
  }

  /** For changes that need no rights of a caller. */
  byPlatform<T>(tenant: string, make: Make<T>): Promise<T> {
    return this.#written({ tenant, by: undefined }, make, () => {});
  }

  /**
   * Plans, checks and stores the change. If another change came first, repeats all three on the new state;
   * `AppError("conflict")` after `GROUP_CHANGE_ATTEMPTS_MAX` attempts.
   */
  async #written<T>({ tenant, by }: Writer, make: Make<T>, check: (change: GivenChange) => void): Promise<T> {
    const { store, current, runtime } = this.#with;
    for (let attempt = 0; attempt < GROUP_CHANGE_ATTEMPTS_MAX; attempt++) {
      const on = new Definitions(await store.load(tenant));
      const { change: made, answer } = make(on);
      const change = stamped(made, newStamp(by, runtime));
      const after = changed(on, change);
      check({ change, before: on, after });
      const mark = Buffer.from(runtime.random.bytes(MARK_BYTES)).toString("base64url");
      try {
        if (await store.change(tenant, on.stored, { change, mark })) return answer(after);
      } finally {
        current.of(tenant).doubt();
      }
    }
    throw new AppError("conflict", "Others change the groups of this tenant all the time: nothing was changed.");
  }
}

function stamped(change: StoredChange, stamp: Stamp): StampedChange {
  const { groups = [], paths = [] } = change;
  return {
    ...change,
    groups: groups.map((group) => ({ ...group, stamp })),
    paths: paths.map((path) => ({ ...path, stamp })),
  };
}

function changed({ stored }: Definitions, change: StoredChange): Definitions {
  const { groups = [], goneGroups = [], paths = [], gonePaths = [] } = change;
  const ids = new Set([...goneGroups, ...groups.map(({ id }) => id)]);
  const names = new Set([...gonePaths, ...paths.map(({ name }) => name)]);
  return new Definitions({
    ...stored,
    groups: [...stored.groups.filter(({ id }) => !ids.has(id)), ...groups],
    paths: [...stored.paths.filter(({ name }) => !names.has(name)), ...paths],
  });
}
