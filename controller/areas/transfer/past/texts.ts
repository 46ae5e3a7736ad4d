import { isDeepStrictEqual } from "node:util";
import { readAhead } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import { EXPORT_HISTORIES_AHEAD } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import type { ClassView, ObjectTimes, PastState, Unrestricted } from "../../objects/index.ts";
import { seesAll, type Principal } from "../../permissions/index.ts";
import type { ExportedObject } from "../rows.ts";
import { objectText, stateText } from "../script.ts";
import type { ExportedClass } from "../types.ts";

interface PastTextsOptions {
  readonly principal: Principal;
  readonly exported: ExportedClass;
  /** Names of the edge types to export. */
  readonly relations: ReadonlySet<string>;
  readonly objects: Unrestricted<"times" | "pastStates">;
  readonly signal?: AbortSignal | undefined;
}

/**
 * `AppError("invalid")` for a class of the platform. `AppError("denied")` for a class with versions of which the
 * principal sees only a part. Which part of an object is visible may differ between its versions.
 */
export function requireTimes(principal: Principal, view: ClassView): void {
  if (view.system)
    throw new AppError(
      "invalid",
      `[Valid] Objects of ${view.path} are kept by their owner: they are exported without times.`,
    );
  if (view.kind === "record" || !view.options.version || seesAll(principal, [view])) return;
  throw new AppError("denied", `${principal.user} sees only a part of ${view.path}, and so not its history.`, {
    details: { class: view.path },
  });
}

/**
 * Statements for the objects of one class with their times and earlier states, newest first. Usually the current object
 * comes first. If its last version differs from it, that version comes before it.
 */
export class PastTexts {
  readonly #with: PastTextsOptions;

  constructor(options: PastTextsOptions) {
    this.#with = options;
  }

  get hasVersions(): boolean {
    const { kind, options } = this.#with.exported.view;
    return kind === "entity" && options.version;
  }

  async *ofObjects(objects: readonly ExportedObject[]): AsyncGenerator<string> {
    const { exported, principal, relations } = this.#with;
    if (exported.view.kind === "record") {
      for (const object of objects) yield objectText(exported, object, { relations });
      return;
    }
    const ids = objects.map(({ id }) => id);
    const times = await this.#with.objects.unrestricted.times(principal, exported.view.path, ids);
    const timed = objects.map((object, at) => ({ object, times: timesOf(object.values, times[at]) }));
    const past = readAhead(timed, EXPORT_HISTORIES_AHEAD, (one) => this.#states(one.object.id, one.times.writeUs));
    for await (const [one, states] of past) yield* this.#ofObject(one, states);
  }

  async *ofRemoved(ids: readonly string[]): AsyncGenerator<string> {
    const { exported, relations } = this.#with;
    const past = readAhead(ids, EXPORT_HISTORIES_AHEAD, (id) => this.#states(id));
    for await (const [, states] of past) for await (const state of states) yield stateText(exported, state, relations);
  }

  async *#ofObject(
    { object, times }: { readonly object: ExportedObject; readonly times: ObjectTimes },
    states: AsyncIterable<PastState>,
  ): AsyncGenerator<string> {
    const { exported, relations } = this.#with;
    const present = objectText(exported, object, { relations, times });
    let isPresentTold = false;
    for await (const state of states) {
      const isLast = !isPresentTold && state.timeUs === times.writeUs;
      if (isLast && this.#isAs(state, object, times)) continue;
      if (isLast) {
        yield stateText(exported, state, relations);
        continue;
      }
      if (!isPresentTold) yield present;
      isPresentTold = true;
      yield stateText(exported, state, relations);
    }
    if (!isPresentTold) yield present;
  }

  async *#states(id: string, toUs?: number): AsyncGenerator<PastState> {
    if (!this.hasVersions) return;
    const { objects, principal, exported, signal } = this.#with;
    const ref = { id, class: exported.view.path };
    for await (const states of objects.unrestricted.pastStates(principal, ref, { toUs, signal })) yield* states;
  }

  /** True if an import that writes the object creates exactly this version. Then the version needs no statement. */
  #isAs({ state }: PastState, { values }: ExportedObject, { writeUs, createdMs }: ObjectTimes): boolean {
    const { columns, view } = this.#with.exported;
    if (state === undefined || state.dropped.length + state.lost.length > 0 || state.createdMs !== createdMs)
      return false;
    const { ttlSeconds } = view.options;
    const endsAtMs = ttlSeconds === undefined ? undefined : Math.floor(writeUs / 1_000) + Math.ceil(ttlSeconds * 1_000);
    if (state.untilMs !== endsAtMs) return false;
    return columns.every(({ name }) => isDeepStrictEqual(state.values[name] ?? null, values[name] ?? null));
  }
}

/**
 * The exact times of an object. If it was written or removed after it was read, these are the times of the row, which
 * have milliseconds only.
 */
function timesOf({ vtime, ctime }: Row, times: ObjectTimes | undefined): ObjectTimes {
  const [vtimeMs, createdMs] = [Number(vtime), Number(ctime)];
  if (times !== undefined && Math.floor(times.writeUs / 1_000) === vtimeMs) return times;
  return { writeUs: vtimeMs * 1_000 + 999, createdMs };
}
