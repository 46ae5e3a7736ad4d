import { AppError } from "../../../common/errors.ts";
import { isInside } from "../../../common/paths.ts";
import type { Principal } from "../permissions/index.ts";
import type { FileEntry } from "./entries.ts";
import type { Place } from "./names.ts";
import type { FileStore } from "./store.ts";
import { targetOf } from "./work-rights.ts";
import type { OpenFileWork } from "./work-journal.ts";

/** The paths under which files run, besides their own. The area that runs files provides them. */
export interface RunNames {
  /** Paths of system files that would no longer run if the users' space had a file at `fullname`. */
  readonly alsoHidden: (ospace: string, fullname: string) => readonly string[];
  /** Paths of built-in files, which every tenant has without storing them. They belong to the system's space. */
  readonly builtIn: (ospace: string) => readonly string[];
}

const NO_NAMES: RunNames = { alsoHidden: () => [], builtIn: () => [] };

type Move = Pick<OpenFileWork, "from" | "to">;

/**
 * Refuses new files of the users' space that would run, or be served, in place of a file of the system's space. A
 * folder hides nothing. An existing file of the users' space may be overwritten.
 */
export class HidingGuard {
  readonly #store: FileStore;
  readonly #names: RunNames;

  constructor(store: FileStore, names: RunNames = NO_NAMES) {
    this.#store = store;
    this.#names = names;
  }

  /** `AppError("denied")` if a new file of the users' space at one of these places would hide a system file. */
  async requireNothingHidden(principal: Principal, places: readonly Place[]): Promise<void> {
    const hidden = places.map((place) => this.#hiddenAt(principal, place));
    const found = await this.#store.get(principal, hidden.flat());
    const files = new Set(found.flatMap((entry) => (entry?.content ? [entry.fullname] : [])));
    for (const path of this.#names.builtIn(principal.ospace)) files.add(path);
    const hiding = places.find((_, at) => hidden[at]?.some(({ fullname }) => files.has(fullname)));
    if (hiding) throw hides(principal, hiding);
  }

  /** Warns if a file of the users' space hides the system file at `place`. Built-in files cannot be hidden. */
  async warnings(principal: Principal, { space, fullname }: Place): Promise<readonly string[]> {
    if (space === "user" || this.#names.builtIn(principal.ospace).includes(fullname)) return [];
    const users = await this.#store.find(principal, { space: "user", fullname });
    if (!users?.content) return [];
    return [
      `A file of the users' space at ${fullname} hides this one: it is run and served instead, until it is removed.`,
    ];
  }

  /** Like `requireNothingHidden`, for the target places of these entries in a copy or move. */
  async requireEntries(principal: Principal, work: Move, entries: readonly FileEntry[]): Promise<void> {
    const targets = entries.filter(({ content }) => content !== undefined).map((entry) => targetOf(work, entry));
    const former = await this.#store.get(principal, targets);
    await this.requireNothingHidden(
      principal,
      targets.filter((_, at) => !former[at]?.content),
    );
  }

  /** Like `requireEntries`, for all entries of the work. Called before the work begins. */
  async requireWork(principal: Principal, work: Move): Promise<void> {
    const place = { space: "user", fullname: work.from } as const;
    const entry = await this.#store.find(principal, place);
    if (entry?.content) await this.requireEntries(principal, work, [entry]);
    else await this.#requireBelow(principal, work, place);
  }

  /**
   * Checks the content of a folder. A folder that does not exist in the system's space hides nothing, so it is skipped.
   */
  async #requireBelow(principal: Principal, work: Move, folder: Place): Promise<void> {
    if (!(await this.#systemHas(principal, targetOf(work, folder)))) return;
    const folders: Place[] = [];
    for await (const page of this.#store.in(principal, folder)) {
      await this.requireEntries(principal, work, page);
      for (const { content, space, fullname } of page) if (!content) folders.push({ space, fullname });
    }
    for (const below of folders) await this.#requireBelow(principal, work, below);
  }

  async #systemHas(principal: Principal, folder: Place): Promise<boolean> {
    const places = this.#hiddenAt(principal, folder);
    const builtIn = this.#names.builtIn(principal.ospace);
    if (places.some(({ fullname }) => builtIn.some((path) => isInside(fullname, path)))) return true;
    return (await this.#store.get(principal, places)).some((entry) => entry !== undefined);
  }

  #hiddenAt({ ospace }: Principal, { fullname }: Place): readonly Place[] {
    const paths = [fullname, ...this.#names.alsoHidden(ospace, fullname)];
    return paths.map((path) => ({ space: "system", fullname: path }));
  }
}

function hides({ user }: Principal, { fullname: path }: Place): AppError {
  const text = `${path} would hide a file of the system's space, which only administrators may do, and ${user} is none: choose another path.`;
  return new AppError("denied", text, { details: { path } });
}
