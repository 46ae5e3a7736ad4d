import { withinTime } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import { FILE_WORK_ANSWER_MS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { NewWork } from "../../store/journal/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { HidingGuard } from "./hiding.ts";
import type { FileEntry } from "./entries.ts";
import type { Place } from "./names.ts";
import { notFound, refuseCircle } from "./open-places.ts";
import { mayNameSystem } from "./spaces.ts";
import type { FileStore } from "./store.ts";
import type { FileVisibility } from "./visible.ts";
import type { FileWorkEnd, FileWorkJournal, OpenFileWork } from "./work-journal.ts";
import { requireWholeWork } from "./work-rights.ts";
import type { FileWorks } from "./work.ts";

interface CarryingDependencies {
  readonly runtime: Runtime;
  readonly store: FileStore;
  readonly journal: FileWorkJournal;
  readonly works: FileWorks;
  readonly hiding: HidingGuard;
  readonly visibilityOf: (principal: Principal) => Promise<FileVisibility>;
}

/** Begins work with files for calls, and waits for their ends. */
export class Carrying {
  readonly #with: CarryingDependencies;

  constructor(dependencies: CarryingDependencies) {
    this.#with = dependencies;
  }

  /** Runs a copy, move or removal. It is journaled first, so that another controller can finish it. */
  async run(principal: Principal, { place, ...asked }: AskedWork): Promise<void> {
    const { store, hiding, visibilityOf } = this.#with;
    const visibility = await visibilityOf(principal);
    const work = this.newWork(principal, visibility, { place, ...asked });
    await requireWholeWork(work, { principal, store, visibility });
    if (work.hidesNothing) await hiding.requireWork(principal, work);
    await this.carry(work);
  }

  /** Work of the principal, with the rules that apply to it until its end. It is not begun yet. */
  newWork(principal: Principal, { rules }: FileVisibility, { place, to, ...asked }: AskedWork): NewWork<OpenFileWork> {
    const { tenant, ospace, user, traceparent } = principal;
    const { clock, random } = this.#with.runtime;
    const startedMs = clock.nowMs();
    const target = to ?? place;
    const isRemoval = asked.kind === "remove" || asked.kind === "release";
    const mayHide = isRemoval || target.space !== "user" || mayNameSystem(principal);
    return {
      id: ulidOf(startedMs, random.bytes(10)),
      ...{ tenant, ospace, user, traceparent, startedMs },
      ...asked,
      space: place.space,
      from: place.fullname,
      at: place.fullname,
      ...(to && { to: to.fullname }),
      ...(rules && { rules }),
      ...(!mayHide && ({ hidesNothing: true } as const)),
    };
  }

  /** Begins the work and waits for its end. `AppError("deadline")`: it continues in the background. */
  async carry(work: NewWork<OpenFileWork>): Promise<FileWorkEnd> {
    const { runtime, journal, works } = this.#with;
    journal.inFlight.hold(work.id);
    const begun = await journal.beginAlone(work).catch((error: unknown) => {
      journal.inFlight.letGo(work.id);
      throw error;
    });
    const carried = works.start(begun);
    // If the wait below ends first, a later error is not reported to the caller.
    carried.catch(() => undefined);
    const over = await withinTime(runtime.clock, carried, FILE_WORK_ANSWER_MS);
    if (!over?.end) throw new AppError("deadline", `${work.from} is still being worked on, which goes on by itself.`);
    if (over.end.code) throw new AppError(over.end.code, over.end.message);
    return over.end;
  }

  /** `AppError("conflict")` if something is at `to`. */
  async move(principal: Principal, place: Place, to: Place): Promise<void> {
    const [, there] = await this.#found(principal, place, to);
    if (to.fullname === place.fullname) return;
    refuseCircle(place, to);
    if (there) throw new AppError("conflict", `${to.fullname} is there already.`);
    await this.run(principal, { kind: "move", place, to });
  }

  /** Replaces files and merges folders. `AppError("conflict")` for a file in place of a folder, or a folder of a file. */
  async copy(principal: Principal, place: Place, to: Place): Promise<void> {
    const [entry, there] = await this.#found(principal, place, to);
    refuseCircle(place, to);
    if (there && !there.content !== !entry.content)
      throw new AppError("conflict", `${to.fullname} is there already, and is a ${there.content ? "file" : "folder"}.`);
    await this.run(principal, { kind: "copy", place, to });
  }

  /** `AppError("not_found")` if the principal sees no entry at `place`. The entry at `to` may be invisible. */
  async #found(principal: Principal, place: Place, to: Place): Promise<FoundEntries> {
    const { store, visibilityOf } = this.#with;
    const [entry, there] = await store.get(principal, [place, to]);
    if (!entry || !(await visibilityOf(principal)).shown(entry)) throw notFound(place);
    return [entry, there];
  }
}

type FoundEntries = readonly [FileEntry, there: FileEntry | undefined];

export interface AskedWork extends Pick<OpenFileWork, "kind" | "kept" | "removal"> {
  readonly place: Place;
  /** New place of the file or folder; absent for work that has none. */
  readonly to?: Place;
}
