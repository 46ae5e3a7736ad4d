import { join } from "node:path";
import type { Emission } from "../../../outbox/outbox.ts";
import { look, type FileLook } from "../folder.ts";
import type { FollowedFile } from "../followed.ts";
import type { LogWork } from "../work.ts";
import type { UnreadLife } from "./missed.ts";
import { allTold, type Position, type Switches } from "./switches.ts";

/** Tells when lives of logs may have come and gone between two looks, at the names the logs are known by. */
export class RotationTracker {
  readonly #root: string;
  readonly #switches: Switches;
  /** When the last look began. */
  #lookedMs = Infinity;

  constructor(root: string, switches: Switches) {
    this.#root = root;
    this.#switches = switches;
  }

  beginLook(rotations: ReadonlySet<string>): void {
    this.#switches.beginLook(rotations);
  }

  /** Where a file's home stood before the present look, which found it there. */
  beforeLook(home: string): Position | undefined {
    return this.#switches.beforeLook(home);
  }

  /** Changes during a look belong to the file that it found, if that is still there. */
  async endLook(files: Iterable<FollowedFile>, atMs: number): Promise<void> {
    this.#lookedMs = atMs;
    const unsure = [...files].filter(
      ({ isHome, atHome, state: { home } }) =>
        isHome && this.#switches.now(home) && this.#switches.since(atHome, home) !== 0,
    );
    if (unsure.length > 0) await allTold();
    for (const file of unsure) {
      const { home, id, link } = file.state;
      const position = this.#switches.now(home);
      const at = await look(this.#root, home);
      if (at?.id === id && at.link === link) file.atHome = position;
    }
  }

  /**
   * A gap when more than one change of its home lies between a file and what is there now. A log that is moved away and
   * begun anew changes it twice, a link that is replaced once.
   */
  async gapAfter(file: FollowedFile, looks: readonly FileLook[]): Promise<Emission[]> {
    const { home } = file.state;
    const isLink = looks.some(({ path, link }) => path === home && link !== undefined);
    await allTold();
    const changes = this.#switches.since(file.atHome, home);
    const isSingle = changes !== undefined && changes > 0 && changes <= (isLink ? 1 : 2);
    return isSingle ? [] : this.unknownGap(file);
  }

  /** A life of a log was packed before it was read, and what it was packed into is not read. */
  unreadGap({ policy, spec, host }: LogWork, { home, bytes }: UnreadLife): Emission[] {
    const toMs = host.clock.nowMs();
    const value = {
      policy: policy.name,
      source: join(spec.dir, home),
      reason: "vanished",
      count: bytes,
      unit: bytes > 0 ? "bytes" : "unknown",
      fromMs: Math.round(Math.min(this.#lookedMs, toMs)),
      toMs,
    };
    return [{ body: { $case: "gap", value } }];
  }

  /** From the last look that found it at home: it may have been read since, elsewhere. */
  unknownGap(file: FollowedFile): Emission[] {
    return file.gap("vanished", 0, Math.min(file.state.seenMs, this.#lookedMs));
  }
}
