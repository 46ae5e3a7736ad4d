import { AppError } from "../../../common/errors.ts";
import { RULE_RETRIES_COUNTED_MS, RULE_RETRIES_COUNTED_SHARE } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { Unrestricted } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";

interface Dependencies {
  readonly objects: Unrestricted<"count">;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Path of the class, relative to the tenant's ospace. */
  readonly path: string;
  readonly max: number;
}

interface Room {
  readonly countedMs: number;
  readonly isFull: boolean;
  /** Number of objects that may be added before the next count. */
  left: number;
}

/**
 * Limits the number of a tenant's objects of a class to `max`. It counts the stored objects of all controllers. It
 * counts again after `RULE_RETRIES_COUNTED_MS`, and when one part in `RULE_RETRIES_COUNTED_SHARE` of the free places is
 * taken. So it counts more often when fewer places are free, and several controllers together exceed `max` by a few
 * objects only.
 */
export class RetriesRoom {
  readonly #with: Dependencies;
  readonly #rooms = new Map<string, Room>();
  readonly #counting = new Map<string, Promise<Room>>();
  /** By tenant: number of objects that have a place but may not be stored yet. */
  readonly #underWay = new Map<string, number>();

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** Runs `keep` if there is room; otherwise returns false. */
  async within(principal: Principal, keep: () => Promise<unknown>): Promise<boolean> {
    const { tenant } = principal;
    if (!(await this.#take(principal))) return false;
    this.#add(tenant, 1);
    try {
      await keep();
    } finally {
      this.#add(tenant, -1);
    }
    return true;
  }

  leave(tenant: string): void {
    this.#rooms.delete(tenant);
    this.#counting.delete(tenant);
  }

  async #take(principal: Principal): Promise<boolean> {
    let room = this.#rooms.get(principal.tenant);
    while (room === undefined || this.#isOver(room)) room = await this.#count(principal);
    if (room.isFull) return false;
    room.left -= 1;
    return true;
  }

  #isOver({ countedMs, isFull, left }: Room): boolean {
    return (left === 0 && !isFull) || this.#with.clock.monotonicMs() - countedMs >= RULE_RETRIES_COUNTED_MS;
  }

  /** Concurrent callers of a tenant share one count. */
  #count(principal: Principal): Promise<Room> {
    const { tenant } = principal;
    const running = this.#counting.get(tenant);
    if (running) return running;
    const counting = this.#counted(principal)
      .then((room) => {
        if (this.#counting.get(tenant) === counting) this.#rooms.set(tenant, room);
        return room;
      })
      .finally(() => {
        if (this.#counting.get(tenant) === counting) this.#counting.delete(tenant);
      });
    this.#counting.set(tenant, counting);
    return counting;
  }

  async #counted(principal: Principal): Promise<Room> {
    const { objects, path, max, clock } = this.#with;
    let free = max - (this.#underWay.get(principal.tenant) ?? 0);
    const pages = await objects.unrestricted.count(principal, { class: principal.ospace + path, subtree: false });
    if (pages === undefined) throw new AppError("internal", `${path} is not counted by its index.`);
    for await (const page of pages) for (const { count } of page) free -= count;
    const isFull = free <= 0;
    const left = isFull ? 0 : Math.max(1, Math.floor(free / RULE_RETRIES_COUNTED_SHARE));
    return { countedMs: clock.monotonicMs(), isFull, left };
  }

  #add(tenant: string, by: number): void {
    const sum = (this.#underWay.get(tenant) ?? 0) + by;
    if (sum > 0) this.#underWay.set(tenant, sum);
    else this.#underWay.delete(tenant);
  }
}
