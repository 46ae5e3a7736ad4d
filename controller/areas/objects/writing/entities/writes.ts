import type { EntityChange } from "../../../../store/objects.ts";
import { confirmed } from "../../definitions/confirm.ts";
import type { Snapshot } from "../../definitions/snapshot.ts";
import { marksOf } from "../../history/formeredges.ts";
import { compose, type ComposedWrite, type EntityWrite } from "../../values/compose.ts";
import { beforeEnds, expires, tombstonesAhead } from "./ends.ts";
import { rebindWrite } from "../rebind.ts";
import { keepSharedTerms, type SharedTermsWrite } from "./sharedterms.ts";
import type { WriteContext, Writing } from "../writing.ts";

/** Makes composed writes of entities, in the order that keeps a reader from seeing half of them. */
export class EntityWrites {
  readonly #writing: Writing;

  constructor(writing: Writing) {
    this.#writing = writing;
  }

  /** Makes the writes. Repairs damage that concurrent writes of other controllers may have done. */
  async make(context: WriteContext, writes: readonly EntityWrite[], composed: readonly ComposedWrite[]): Promise<void> {
    const before = writes.some(({ view }) => expires(view)) ? beforeEnds(writes, composed, this.#writing.source) : [];
    for await (const changes of before) await this.#writing.change(changes);
    const linked = writes.filter(({ addEdges }) => addEdges !== undefined);
    if (linked.length > 0) await this.#writing.change(linked.flatMap(edgeMarks));
    const changes = composed.map((entry) => entry.change);
    await this.#writing.changeOnce(changes, context.inCommit);
    const unneeded = composed.map((entry) => entry.unneeded).filter((change) => change !== undefined);
    // Removes terms last, because superfluous terms do no harm.
    if (unneeded.length > 0) await this.#writing.change(unneeded);
    if (!context.held.isHeld()) await confirmed(context, (now) => this.#bring(writes, now));
    if (composed.some((entry) => entry.shared !== undefined)) await this.#keepShared(writes, composed);
  }

  #keepShared(writes: readonly EntityWrite[], composed: readonly ComposedWrite[]): Promise<void> {
    const shared = writes.flatMap(({ view, key, fresh, timeUs }, at): SharedTermsWrite[] => {
      const terms = fresh ? undefined : composed[at]?.shared;
      return terms === undefined ? [] : [{ view, key: { cid: view.cid, id: key }, timeUs, terms }];
    });
    return keepSharedTerms(shared, { clock: this.#writing.clock, ...this.#writing.source });
  }

  async #bring(writes: readonly EntityWrite[], now: Snapshot): Promise<void> {
    const orphans = writes.filter((write) => now.byCid(write.view.cid) === undefined);
    // Their class does not exist any more, so no read would find these objects.
    await this.#writing.change(
      orphans.map(({ view, key, timeUs }) => ({ key: { cid: view.cid, id: key }, timeUs, death: true as const })),
    );
    const rebound = writes.map((write) => rebindWrite(write, now));
    await this.#writing.change(tombstonesAhead(rebound));
    await this.#writing.change(rebound.map((write) => compose(write).change));
  }
}

function edgeMarks({ view, key, addEdges = [], timeUs }: EntityWrite): EntityChange[] {
  return marksOf({ view, key: { cid: view.cid, id: key } }, addEdges, timeUs);
}
