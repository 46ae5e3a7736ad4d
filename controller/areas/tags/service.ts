import { withinTime } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import { TAG_MOVE_ANSWER_MS, TAG_MOVES_OPEN_MAX } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Controllers, NewWork } from "../../store/journal/index.ts";
import type { Objects } from "../objects/index.ts";
import { requirePermission, systemPrincipal, type Principal } from "../permissions/index.ts";
import type { Query } from "../query/index.ts";
import { bearersOf } from "./bearers.ts";
import { TAG_MOVE_PATH } from "./classes.ts";
import { TagMoves } from "./moves.ts";
import { moveJournal, type MoveJournal, type NotedMove, type OpenMove } from "./open-moves.ts";
import { checkDomain, isAtOrBelow, tagPath } from "./paths.ts";
import type { TreesState } from "./store.ts";
import { ObjectTagging, type Tagging } from "./tagging.ts";
import { TreesChanges } from "./trees.ts";
import type { MovingTag, TagNode, TagTrees } from "./tree.ts";

/** A tag of a domain, as the caller writes it. */
export interface TagName {
  readonly domain: string;
  readonly path: string;
}

export interface TagDependencies {
  readonly stores: Stores;
  readonly objects: Objects;
  readonly query: Pick<Query, "rows">;
  readonly runtime: Runtime;
  readonly controllers: Controllers;
}

/** Trees of tags, one per domain, and the tags of objects. */
export class TagService {
  readonly #with: TagDependencies;
  readonly #trees: TreesChanges;
  readonly #tagging: ObjectTagging;
  readonly #journal: MoveJournal;
  readonly #moves: TagMoves;

  constructor(dependencies: TagDependencies) {
    this.#with = dependencies;
    this.#trees = new TreesChanges(dependencies);
    this.#tagging = new ObjectTagging(dependencies);
    this.#journal = moveJournal(dependencies);
    this.#moves = new TagMoves({ ...dependencies, journal: this.#journal, trees: this.#trees });
  }

  /** The tree of a domain; empty if the domain or the tag does not exist. `below`: only the part below that tag. */
  async tree(principal: Principal, domain: string, below = ""): Promise<TagNode> {
    requirePermission(principal, "tags:read");
    checkDomain(domain);
    const root = below === "" || below === "/" ? undefined : tagPath(below);
    return (await this.#trees.trees(principal.tenant)).view(domain, root);
  }

  /** Adds the tag and all tags above it. An existing tag stays. */
  async add(principal: Principal, { domain, path }: TagName): Promise<void> {
    requirePermission(principal, "tags:write");
    checkDomain(domain);
    await this.#show(principal.tenant, domain, [tagPath(path)]);
  }

  /**
   * Removes the tag and all below it from the domain. A tag that no other domain shows is also removed from all
   * objects; that part runs like `move`. Returns warnings. `AppError("not_found")`.
   */
  async remove(principal: Principal, { domain, path }: TagName): Promise<readonly string[]> {
    requirePermission(principal, "tags:write");
    checkDomain(domain);
    const from = tagPath(path);
    return this.#change(principal, { domain, from }, (trees) => trees.without(domain, from));
  }

  /**
   * Moves the tag and all below it to the whole new path `to`, in every domain that shows the tag and on all objects
   * that have it. Returns warnings, also about objects that refuse the change. `AppError("conflict")` when this domain
   * has the new path, or when one of both tags is being moved. `AppError("deadline")`: the trees are changed, and the
   * change of objects continues in the background.
   */
  async move(principal: Principal, { domain, path }: TagName, to: string): Promise<readonly string[]> {
    requirePermission(principal, "tags:write");
    checkDomain(domain);
    const move = { from: tagPath(path), to: tagPath(to) };
    return this.#change(principal, { domain, ...move }, (trees) => trees.moved(domain, move));
  }

  /** True if no object of the tenant has the tag or one below it, including objects that the caller may not see. */
  async isUnused(principal: Principal, path: string): Promise<boolean> {
    requirePermission(principal, "tags:read");
    const { tenant, ospace, traceparent } = principal;
    const platform = systemPrincipal(tenant, ospace, traceparent);
    for await (const _ of bearersOf(this.#with.objects, platform, { path: tagPath(path) })) return false;
    return true;
  }

  /**
   * Adds the tags to the objects, and to the domain where they are missing. `AppError("not_found")` names a missing id;
   * nothing is changed then.
   */
  async addTo(principal: Principal, domain: string, { ids, tags }: Tagging): Promise<void> {
    requirePermission(principal, "tags:write");
    checkDomain(domain);
    const paths = tags.map(tagPath);
    await this.#tagging.add(principal, { ids, tags: paths });
    // Last, so that a tag that was moved away in the meantime is shown again, as the objects now have it.
    await this.#show(principal.tenant, domain, paths);
  }

  /**
   * Removes exactly these tags from the objects, none below them. Tags are the same in every domain; `domain` is only
   * checked.
   */
  async takeFrom(principal: Principal, domain: string | undefined, { ids, tags }: Tagging): Promise<void> {
    requirePermission(principal, "tags:write");
    if (domain !== undefined) checkDomain(domain);
    await this.#tagging.take(principal, { ids, tags: tags.map(tagPath) });
  }

  maintain(tenant: string): Promise<void> {
    return this.#moves.maintain(tenant);
  }

  /** Resolves when all moves that run here now have ended or paused. */
  settled(): Promise<void> {
    return this.#journal.inFlight.settled();
  }

  /** Running moves pause. Another controller, or the next start of this one, takes them. */
  close(): Promise<void> {
    return this.#journal.inFlight.close();
  }

  #show(tenant: string, domain: string, paths: readonly string[]): Promise<void> {
    return this.#trees.change(tenant, ({ trees, moves }) =>
      paths.every((path) => trees.has(domain, path)) ? undefined : { trees: trees.with(domain, paths), moves },
    );
  }

  /**
   * Records the move before the trees change, so that every change of the trees is followed by the change of objects.
   */
  async #change(
    principal: Principal,
    tag: Omit<MovingTag, "id"> & Pick<OpenMove, "domain">,
    make: (trees: TagTrees) => TagTrees,
  ): Promise<readonly string[]> {
    const { clock } = this.#with.runtime;
    const untilMs = clock.monotonicMs() + TAG_MOVE_ANSWER_MS;
    make(await this.#trees.trees(principal.tenant));
    if (tag.to === tag.from) return [];
    const open = this.#open(principal, tag);
    this.#journal.inFlight.hold(open.id);
    const begun = await this.#begin(open, (before) => ({
      trees: make(before.trees),
      moves: [...before.moves, movingOf(open, before)],
    }));
    const ended = this.#moves.start(begun);
    // A caller that no longer waits gets no error; it is stored in the object of the move.
    ended.catch(() => undefined);
    return outcome(begun, await withinTime(clock, ended, untilMs - clock.monotonicMs()));
  }

  async #begin(
    open: NewWork<OpenMove>,
    change: (before: TreesState) => Omit<TreesState, "revision">,
  ): Promise<NotedMove> {
    let begun: NotedMove | undefined;
    try {
      begun = await this.#journal.begin(open);
      await this.#trees.change(open.tenant, change);
      return begun;
    } catch (error) {
      this.#journal.inFlight.letGo(open.id);
      // If the outcome is unknown, maintenance decides.
      if (begun && error instanceof AppError && ["conflict", "invalid", "not_found", "too_large"].includes(error.code))
        await this.#journal.end(begun.open);
      throw error;
    }
  }

  #open(
    { tenant, ospace, user, traceparent }: Principal,
    tag: Omit<MovingTag, "id"> & Pick<OpenMove, "domain">,
  ): NewWork<OpenMove> {
    const { clock, random } = this.#with.runtime;
    const startedMs = clock.nowMs();
    const id = ulidOf(startedMs, random.bytes(10));
    return { id, tenant, ospace, user, traceparent, ...tag, startedMs, notedMs: startedMs, done: 0 };
  }
}

/** `AppError("conflict")` if the move overlaps an open one: their order would be undefined for some objects. */
function movingOf({ id, from, to }: NewWork<OpenMove>, { moves }: TreesState): MovingTag {
  const pathsOf = (move: Omit<MovingTag, "id">): readonly string[] => [
    move.from,
    ...(move.to === undefined ? [] : [move.to]),
  ];
  const meets = (one: string, other: string): boolean => isAtOrBelow(one, other) || isAtOrBelow(other, one);
  const own = { id, from, ...(to !== undefined && { to }) };
  const met = moves.find((move) => pathsOf(move).some((one) => pathsOf(own).some((other) => meets(one, other))));
  if (met)
    throw new AppError("conflict", `The tag ${met.from} is being moved or removed: try again when that has ended.`, {
      details: { move: met.id },
    });
  if (moves.length >= TAG_MOVES_OPEN_MAX)
    throw new AppError("limited", `At most ${TAG_MOVES_OPEN_MAX} tags are moved or removed at once; try again later.`);
  return own;
}

function outcome({ open: begun }: NotedMove, open: OpenMove | undefined): readonly string[] {
  const { id, end, done, ospace } = open ?? begun;
  if (end?.state === "done") return end.message === "" ? [] : [end.message];
  const details = { move: id, done };
  if (end) throw new AppError(end.code ?? "internal", end.message, { details });
  const where = `tagmove:${id} of ${ospace}${TAG_MOVE_PATH}`;
  throw new AppError(
    "deadline",
    `The tree is changed and the objects are still being changed: ${where} tells how it ends.`,
    {
      details,
    },
  );
}
