import { AppError, isAppError } from "../../../../common/errors.ts";
import type { Row } from "../../../../common/value.ts";
import type { ClassCatalog, ReadRequest, DryRun } from "../../objects/index.ts";
import { answering } from "../write/asking.ts";
import type { Change, Ref, WriteContext } from "../write/write.ts";
import type { FoundObjects, Making, Repeatable, Settled, Settlement } from "./repeatable.ts";

type FoundSettled = Extract<Settled, { kind: "found" }>;

interface ChangeContext extends WriteContext {
  readonly catalog: ClassCatalog;
}

/** `undefined` if the owner of a system class may have to make the change. */
export function repeatableChange(change: Change, context: ChangeContext): Repeatable | undefined {
  const { scope } = change;
  return scope.classes.some((view) => view.system && scope.access(view).writable)
    ? undefined
    : new RepeatableChange(change, context);
}

/** An UPDATE or DELETE of the objects that were found when it was settled. */
class RepeatableChange implements Repeatable {
  readonly #change: Change;
  readonly #context: ChangeContext;
  #rehearsal: DryRun | undefined;

  constructor(change: Change, context: ChangeContext) {
    this.#change = change;
    this.#context = context;
  }

  /**
   * Refuses the edits only if they fit no class of the tree, because it is unknown yet which classes have objects to
   * change.
   */
  check(rehearsal: DryRun): void {
    this.#rehearsal = rehearsal;
    const paths = this.#change.scope.classes
      .filter((view) => this.#change.edits(view).length > 0)
      .map((view) => view.path);
    const faults = paths.map((path) => faultOf(() => this.#checkEdits(path, this.#change)));
    if (faults.length > 0 && !faults.includes(undefined)) throw faults[0];
  }

  reads(): readonly ReadRequest[] {
    return this.#change.reads;
  }

  async settle(signal: AbortSignal | undefined): Promise<Settlement> {
    const { asks } = this.#change;
    if (!asks) return this.#settled(this.#change, signal);
    return answering({ asks }, { ...this.#context, signal }, async (change, answers) => {
      const { settled, changes } = await this.#settled(change, signal);
      return { settled: asks.isKept ? { ...settled, answers } : settled, changes };
    });
  }

  async #settled(change: Change, signal: AbortSignal | undefined): Promise<Settlement & { settled: FoundSettled }> {
    const { objects } = this.#context;
    const { principal } = change.scope;
    const refs = await change.find({ ...this.#context, signal });
    for (const path of new Set(refs.map((ref) => ref.class.path))) this.#checkEdits(path, change);
    const times = await objects.unrestricted.writeTimes(
      principal,
      refs.map((ref) => ({ id: ref.id, class: ref.class.path })),
    );
    const found = grouped(refs.map((ref, at) => ({ ...ref, writeUs: times[at] ?? 0 })));
    return { settled: { kind: "found", found }, changes: found };
  }

  async make(settled: Settled, { signal, retimed }: Making): Promise<readonly Row[]> {
    if (settled.kind !== "found") throw new RangeError("a change is settled by its objects");
    const refs = settled.found.flatMap((objects) => this.#refs(objects, retimed));
    const change = this.#change.asks?.answered(settled.answers ?? []) ?? this.#change;
    return [{ count: await change.make(refs, { ...this.#context, signal }) }];
  }

  #refs({ class: path, ids, writeUs }: FoundObjects, retimed: Making["retimed"]): readonly Ref[] {
    const view = this.#context.catalog.get(path);
    if (!view) throw new AppError("not_found", `[NotExist] class : ${path} not find !`);
    return ids.map((id) => ({
      id,
      class: view,
      writeUs,
      ...(retimed && { retimed: (laterUs: number) => retimed((now) => retimedIn(now, { class: path, id }, laterUs)) }),
    }));
  }

  #checkEdits(path: string, change: Change): void {
    const view = this.#context.catalog.get(path);
    if (view) this.#rehearsal?.checkEdits(path, change.edits(view));
  }
}

function faultOf(check: () => void): AppError | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (isAppError(error)) return error;
    throw error;
  }
}

/** The settled change with another time for one of the objects. */
function retimedIn(
  settled: Settled,
  { class: path, id }: { readonly class: string; readonly id: string },
  writeUs: number,
): Settled {
  if (settled.kind !== "found") return settled;
  const others = settled.found.map((objects) =>
    objects.class === path ? { ...objects, ids: objects.ids.filter((other) => other !== id) } : objects,
  );
  return { ...settled, found: [...others, { class: path, ids: [id], writeUs }] };
}

function grouped(refs: readonly (Ref & { readonly writeUs: number })[]): readonly FoundObjects[] {
  const groups = new Map<string, { class: string; writeUs: number; ids: string[] }>();
  for (const {
    id,
    class: { path },
    writeUs,
  } of refs) {
    const key = `${writeUs} ${path}`;
    const group = groups.get(key) ?? { class: path, writeUs, ids: [] };
    groups.set(key, group);
    group.ids.push(id);
  }
  return [...groups.values()];
}
