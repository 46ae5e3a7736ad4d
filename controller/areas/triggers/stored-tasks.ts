import { AppError } from "../../../common/errors.ts";
import { CELL_MAX_BYTES, CHANGE_BATCH_MAX } from "../../../common/limits.ts";
import type { Row, Value } from "../../../common/value.ts";
import {
  idFromColumns,
  triggerName,
  type ObjectChangeEvent,
  type Objects,
  type Pushdown,
  type ReadRequest,
  type TriggerDefinition,
  type Unrestricted,
} from "../objects/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";
import { ASIDE_PATH, type AsideState } from "./classes.ts";
import type { TriggerTask } from "./trigger-task.ts";

/** A stored change for one trigger, as read from its class. */
export interface StoredTask {
  readonly event: ObjectChangeEvent;
  readonly trigger: Pick<TriggerDefinition, "class" | "name">;
  /** Id of the controller that runs it. Empty: it has no owner. */
  readonly owner: string;
}

const WAITING = [{ kind: "equals", column: "state", values: ["waiting"] }] as const;

interface Dependencies {
  readonly objects: Pick<Objects, "catalog"> & Unrestricted<"insert" | "remove" | "read">;
  readonly ospaceOf: (tenant: string) => Promise<string>;
}

/** Changes that are stored until a trigger has run, or because it failed. They are objects of a system class. */
export class StoredTasks {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** Stores changes of one tenant. `owner`: id of the controller that continues with them, or empty. Idempotent. */
  async put(
    tasks: readonly TriggerTask[],
    as: { state: AsideState; owner: string; error?: string; attempts?: number },
  ) {
    const [first] = tasks;
    if (first === undefined) return;
    const principal = await this.#platform(first.event.tenant);
    const { state, owner, error = "", attempts = 0 } = as;
    const rows = tasks.map(({ event, trigger }): Row => {
      const row = { ...keysOf({ event, trigger }), state, owner, error, attempts };
      return { ...row, event: textOf(event) };
    });
    for (let from = 0; from < rows.length; from += CHANGE_BATCH_MAX) {
      const some = rows.slice(from, from + CHANGE_BATCH_MAX);
      await this.#with.objects.unrestricted.insert(principal, principal.ospace + ASIDE_PATH, some);
    }
  }

  /** Removes the stored change of a task. Idempotent. */
  async remove(task: Pick<TriggerTask, "event"> & Pick<StoredTask, "trigger">): Promise<void> {
    const principal = await this.#platform(task.event.tenant);
    const view = (await this.#with.objects.catalog(principal)).get(principal.ospace + ASIDE_PATH);
    const id = view && idFromColumns(view, keysOf(task));
    if (id !== undefined)
      await this.#with.objects.unrestricted.remove(principal, [{ id, class: principal.ospace + ASIDE_PATH }]);
  }

  /** All waiting changes in pages, in no particular order. */
  async *waiting(tenant: string): AsyncGenerator<readonly StoredTask[]> {
    for await (const rows of this.#read(tenant, WAITING)) yield rows.map(storedTaskOf);
  }

  /** Waiting changes of the objects with these ids, in no particular order. */
  async *waitingOf(tenant: string, ids: readonly string[]): AsyncGenerator<StoredTask> {
    const where = [{ kind: "equals", column: "object", values: ids } as const];
    const wanted = new Set<unknown>(ids);
    for await (const rows of this.#read(tenant, where))
      for (const row of rows) if (wanted.has(row["object"])) yield storedTaskOf(row);
  }

  /** Reads the changes again; returns those that still wait and have this owner. */
  async ofOwner(tasks: readonly TriggerTask[], owner: string): Promise<readonly TriggerTask[]> {
    const [first] = tasks;
    if (first === undefined) return [];
    const principal = await this.#platform(first.event.tenant);
    const path = principal.ospace + ASIDE_PATH;
    const view = (await this.#with.objects.catalog(principal)).get(path);
    const byId = new Map(tasks.map((task) => [view && idFromColumns(view, keysOf(task)), task]));
    const ids = [...byId.keys()].filter((id) => id !== undefined);
    const found: TriggerTask[] = [];
    for await (const page of this.#with.objects.unrestricted.read(principal, { class: path, subtree: false, ids }))
      for (const { id, values } of page) {
        const task = byId.get(id);
        if (task && values["state"] === "waiting" && textOrEmpty(values["owner"]) === owner) found.push(task);
      }
    return found;
  }

  /** Returns true if no change waits. */
  async isEmpty(tenant: string): Promise<boolean> {
    for await (const rows of this.#read(tenant, WAITING, { columns: ["state"], expected: 1 }))
      if (rows.length > 0) return false;
    return true;
  }

  async *#read(
    tenant: string,
    where: readonly Pushdown[],
    how: Pick<ReadRequest, "columns" | "expected"> = {},
  ): AsyncGenerator<readonly Row[]> {
    const principal = await this.#platform(tenant);
    const request = { class: principal.ospace + ASIDE_PATH, subtree: false, where, ...how };
    for await (const page of this.#with.objects.unrestricted.read(principal, request))
      yield page.map(({ values }) => values).filter(({ state }) => state === "waiting");
  }

  async #platform(tenant: string): Promise<Principal> {
    return systemPrincipal(tenant, await this.#with.ospaceOf(tenant), "");
  }
}

function storedTaskOf({ trigger, event, owner }: Row): StoredTask {
  const [path = "", name = ""] = textOrEmpty(trigger).split("#");
  return {
    event: JSON.parse(textOrEmpty(event)) as ObjectChangeEvent,
    trigger: { class: path, name },
    owner: textOrEmpty(owner),
  };
}

function textOrEmpty(value: Value | undefined): string {
  return typeof value === "string" ? value : "";
}

function keysOf({ event, trigger }: Pick<TriggerTask, "event"> & Pick<StoredTask, "trigger">): Row {
  return {
    trigger: triggerName(trigger),
    object: event.id,
    time: Math.floor(event.timeMs),
    action: event.action,
    us: Math.round((event.timeMs % 1) * 1_000),
  };
}

function textOf(event: ObjectChangeEvent): string {
  const { whole, ...rest } = event;
  for (const form of [event, ...(whole === undefined ? [] : [rest]), { ...rest, fields: {} }]) {
    const text = JSON.stringify(form);
    if (Buffer.byteLength(text) < CELL_MAX_BYTES) return text;
  }
  throw new AppError("internal", `The change of ${event.id} cannot be kept.`);
}
