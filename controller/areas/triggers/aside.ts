import { AppError } from "../../../common/errors.ts";
import { CELL_MAX_BYTES } from "../../../common/limits.ts";
import type { Row, Value } from "../../../common/value.ts";
import {
  idFromColumns,
  triggerName,
  type ObjectChangeEvent,
  type Objects,
  type TriggerDefinition,
} from "../objects/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";
import { ASIDE_PATH, type AsideState } from "./classes.ts";
import type { Errand } from "./lanes.ts";

/** A kept change as it is found again. */
export interface Kept {
  readonly event: ObjectChangeEvent;
  readonly trigger: Pick<TriggerDefinition, "class" | "name">;
  /** The controller that has it. */
  readonly owner: string;
}

interface Dependencies {
  readonly objects: Pick<Objects, "catalog" | "insert" | "remove" | "read">;
  readonly ospaceOf: (tenant: string) => Promise<string>;
}

/** Changes that wait for a trigger durably, or that it failed on: objects of a system class. */
export class Aside {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** Idempotent. `owner`: empty, or the controller that goes on with it. */
  async put({ event, trigger }: Errand, as: { state: AsideState; owner: string; error?: string; attempts?: number }) {
    const principal = await this.#platform(event.tenant);
    const { state, owner, error = "", attempts = 0 } = as;
    const row: Row = { ...keysOf({ event, trigger }), class: event.class, state, owner, error, attempts };
    await this.#with.objects.insert(principal, principal.ospace + ASIDE_PATH, [{ ...row, event: textOf(event) }]);
  }

  /** Idempotent. */
  async remove(errand: Pick<Errand, "event"> & Pick<Kept, "trigger">): Promise<void> {
    const principal = await this.#platform(errand.event.tenant);
    const view = (await this.#with.objects.catalog(principal)).get(principal.ospace + ASIDE_PATH);
    const id = view && idFromColumns(view, keysOf(errand));
    if (id !== undefined) await this.#with.objects.remove(principal, [{ id, class: principal.ospace + ASIDE_PATH }]);
  }

  /** Those that wait, in no order. */
  async *waiting(tenant: string): AsyncGenerator<Kept> {
    const principal = await this.#platform(tenant);
    const where = [{ kind: "equals", column: "state", values: ["waiting"] } as const];
    const request = { class: principal.ospace + ASIDE_PATH, subtree: false, where };
    for await (const page of this.#with.objects.read(principal, request))
      for (const { values } of page) if (values["state"] === "waiting") yield keptOf(values);
  }

  async #platform(tenant: string): Promise<Principal> {
    return systemPrincipal(tenant, await this.#with.ospaceOf(tenant), "");
  }
}

function keptOf({ trigger, event, owner }: Row): Kept {
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

function keysOf({ event, trigger }: Pick<Errand, "event"> & Pick<Kept, "trigger">): Row {
  return {
    trigger: triggerName(trigger),
    object: event.id,
    time: Math.floor(event.timeMs),
    action: event.action,
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
