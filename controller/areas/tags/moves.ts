import { isAppError } from "../../../common/errors.ts";
import {
  TAG_MOVE_ATTEMPTS,
  TAG_MOVE_PASSES_MAX,
  TAG_MOVE_PROGRESS_MS,
  TAG_MOVE_RETRY_MS,
} from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import { counted } from "../../../common/text/counted.ts";
import type { Runtime } from "../../runtime.ts";
import { isTransient } from "../../store/journal/index.ts";
import type { Unrestricted } from "../objects/index.ts";
import { systemPrincipal } from "../permissions/index.ts";
import { BearerChanges, bearersOf, type TagChange } from "./bearers.ts";
import { tellMove } from "./classes.ts";
import type { MoveEnd, MoveJournal, NotedMove, OpenMove } from "./open-moves.ts";
import { isAtOrBelow, movedPath } from "./paths.ts";
import type { TagTrees } from "./tree.ts";

export interface MoveDependencies {
  readonly journal: MoveJournal;
  readonly objects: Unrestricted<"read" | "update" | "insert">;
  readonly runtime: Runtime;
  readonly trees: MoveTrees;
}

/** Methods of the trees that a move uses. */
export interface MoveTrees {
  trees(tenant: string): Promise<TagTrees>;
  /** True if the trees name the move. If it is false, it stays false. */
  isBegun(tenant: string, id: string): Promise<boolean>;
  /** Removes the move from the trees. Idempotent. */
  forget(tenant: string, id: string): Promise<void>;
}

/** Another controller continues the move, or nothing is left to do. */
class Lost extends Error {}

/**
 * Applies moves that the trees already contain to the objects with those tags. A changed object does not have the old
 * tag any more, so any controller can continue an interrupted move by starting it again.
 */
export class TagMoves {
  readonly #with: MoveDependencies;

  constructor(dependencies: MoveDependencies) {
    this.#with = dependencies;
  }

  /** Resolves with the move when it has ended or paused, or when another controller has it. */
  start(mine: NotedMove): Promise<OpenMove> {
    return this.#start(mine, () => new MoveRun(mine, this.#with).run());
  }

  #start({ open: { id } }: NotedMove, run: () => Promise<OpenMove>): Promise<OpenMove> {
    const running = this.#with.journal.inFlight.carry([id], run);
    running.catch((error: unknown) =>
      this.#with.runtime.log.error({ err: error, move: id }, "a move of a tag broke off"),
    );
    return running;
  }

  /** Continues abandoned moves. Call it periodically and when a controller left; safe on several controllers. */
  async maintain(tenant: string): Promise<void> {
    const { journal } = this.#with;
    for await (const found of journal.abandoned(tenant)) {
      const mine = await journal.take(found);
      if (mine) void this.#start(mine, () => this.#goOn(mine)).catch(() => undefined);
    }
  }

  /** A recorded move that the trees do not name never took effect. */
  async #goOn(mine: NotedMove): Promise<OpenMove> {
    const { journal, trees } = this.#with;
    const { id, tenant, end } = mine.open;
    if (end || (await trees.isBegun(tenant, id))) return new MoveRun(mine, this.#with).run();
    await journal.end(mine.open);
    return mine.open;
  }
}

/** One run of a recorded move by this controller. */
class MoveRun {
  readonly #with: MoveDependencies;
  #held: NotedMove;
  #done: number;
  #toldMs: number;

  constructor(held: NotedMove, dependencies: MoveDependencies) {
    this.#with = dependencies;
    this.#held = held;
    this.#done = held.open.done;
    this.#toldMs = dependencies.runtime.clock.monotonicMs();
  }

  async run(): Promise<OpenMove> {
    const { journal } = this.#with;
    try {
      if (!this.#open.end) {
        const end = await this.#carry();
        this.#keep(await journal.decide(this.#held, end));
      }
      await this.#settle();
    } catch (error) {
      if (!(error instanceof Lost) && !isTransient(error)) throw error;
    }
    return this.#open;
  }

  get #open(): OpenMove {
    return this.#held.open;
  }

  /** Retries while the stores are unavailable for a moment. Returns how the move ended; throws if it must pause. */
  async #carry(): Promise<MoveEnd> {
    const { journal, runtime } = this.#with;
    const { stopping } = journal.inFlight;
    for (let attempt = 1; ; attempt += 1) {
      const before = this.#done;
      try {
        return await this.#carryOnce();
      } catch (error) {
        if (isAppError(error) && !isTransient(error)) return this.#ended("failed", error);
        if (this.#done > before) attempt = 1;
        if (!isAppError(error) || error.code === "internal" || stopping.aborted || attempt >= TAG_MOVE_ATTEMPTS)
          throw error;
        await wait(runtime.clock, TAG_MOVE_RETRY_MS * attempt, stopping);
      }
    }
  }

  /** Repeats until a pass changes no object, because objects may get the tag during a pass. */
  async #carryOnce(): Promise<MoveEnd> {
    const { objects, journal } = this.#with;
    const { tenant, ospace, traceparent, from } = this.#open;
    const platform = systemPrincipal(tenant, ospace, traceparent);
    const changes = new BearerChanges(objects, platform);
    for (let pass = 0; pass < TAG_MOVE_PASSES_MAX; pass++) {
      const change = this.#change(await this.#with.trees.trees(tenant));
      const before = this.#done;
      for await (const rows of bearersOf(objects, platform, { path: from, signal: journal.inFlight.stopping })) {
        this.#done += await changes.make(rows, change);
        await this.#note();
      }
      if (this.#done === before) break;
      await this.#step();
    }
    const { count, reason } = changes.refused;
    return this.#ended(
      "done",
      { message: count > 0 ? `${counted(count, "object keeps", "objects keep")} the tag: ${reason}` : "" },
      count,
    );
  }

  #change(trees: TagTrees): TagChange {
    const { from, to } = this.#open;
    if (to !== undefined) return (tag) => (isAtOrBelow(tag, from) ? movedPath(tag, { from, to }) : tag);
    return (tag) => (isAtOrBelow(tag, from) && !trees.shows(tag) ? undefined : tag);
  }

  async #note(): Promise<void> {
    const { runtime, objects } = this.#with;
    if (runtime.clock.monotonicMs() - this.#toldMs < TAG_MOVE_PROGRESS_MS) return;
    await this.#step();
    await tellMove(objects, this.#open);
    this.#toldMs = runtime.clock.monotonicMs();
  }

  async #step(): Promise<void> {
    this.#keep(await this.#with.journal.step(this.#held, { done: this.#done, notedMs: this.#nextMs() }));
  }

  async #settle(): Promise<void> {
    const { journal, objects, trees } = this.#with;
    const { tenant, id, done, end } = this.#open;
    await trees.forget(tenant, id);
    if (done > 0 || end?.message !== "") await tellMove(objects, this.#open);
    await journal.end(this.#open);
  }

  #ended(state: MoveEnd["state"], of: Pick<MoveEnd, "code" | "message">, refused = 0): MoveEnd {
    return { state, refused, message: of.message, ...(of.code && { code: of.code }), endedMs: this.#nextMs() };
  }

  #keep(changed: NotedMove | undefined): void {
    if (!changed) throw new Lost();
    this.#held = changed;
  }

  #nextMs(): number {
    return Math.max(this.#with.runtime.clock.nowMs(), this.#open.notedMs + 1);
  }
}
