import { expect, test } from "vitest";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import type { ClassDefinition, Definitions } from "./definition.ts";
import { Snapshot } from "./snapshot.ts";

const SEEDS = Array.from({ length: 6 }, (_, at) => at + 1);
const NAMES = ["a", "b", "c"] as const;
const owners = new Map();

function definitionsOf(classes: ReadonlyMap<string, ClassDefinition>): Definitions {
  return {
    counter: undefined,
    counterRevision: 0,
    classes,
    edgeTypes: new Map(),
    dropping: new Map(),
    subscriptions: new Map(),
    triggers: new Map(),
  };
}

/** Everything a snapshot can be asked, in a form that can be compared. */
function told(snapshot: Snapshot): unknown {
  const paths = (views: readonly { readonly path: string }[]): string[] => views.map((view) => view.path);
  const all = snapshot.tree("/");
  return {
    all: all.map((view) => ({
      ...view,
      above: view.above?.cid,
      definition: view.definition.cid,
      own: snapshot.get(view.path) === view && snapshot.byCid(view.cid) === view,
    })),
    some: [...snapshot.views()].length,
    trees: all.map((view) => [paths(snapshot.tree(view.path)), paths(snapshot.children(view.path))]),
    labels: NAMES.map((name) => paths(snapshot.byLabel(name))),
    gone: Array.from({ length: 200 }, (_, cid) => snapshot.byCid(cid)?.path),
  };
}

/** Makes, changes, drops and remakes a few classes of a tree. */
function change(classes: Map<string, ClassDefinition>, random: () => number, cid: number): void {
  const paths = [...classes.keys()];
  const path = paths[Math.floor(random() * paths.length)]!;
  const known = classes.get(path)!;
  const below = `${path}/${NAMES[Math.floor(random() * NAMES.length)]!}`;
  const isLeaf = !paths.some((other) => other.startsWith(`${path}/`));
  if (random() < 0.3 && isLeaf && path !== "/m") classes.delete(path);
  else if (random() < 0.3)
    classes.set(path, { ...known, columns: [...known.columns, { name: `x${cid}`, type: "int", number: cid }] });
  else if (path.length < 10) classes.set(below, { ...known, cid, path: below, columns: [] });
}

test.each(SEEDS)("a snapshot made of the one before is what it would be if it were made anew (seed %i)", (seed) => {
  const { next } = seededRandom(seed);
  const root: ClassDefinition = {
    cid: 1,
    path: "/m",
    kind: "entity",
    columns: [],
    keys: [],
    indexes: [],
    options: { version: false, autosearch: false, hints: {} },
    modifiedAtMs: 0,
    system: false,
  };
  let classes = new Map([[root.path, root]]);
  let before = new Snapshot(definitionsOf(classes), 0, { owners });
  for (let revision = 1; revision < 30; revision++) {
    classes = new Map(classes);
    for (let at = 0; at < 3; at++) change(classes, next, revision * 3 + at);
    const definitions = definitionsOf(classes);
    const now = new Snapshot(definitions, revision, { before, owners });
    expect(told(now)).toEqual(told(new Snapshot(definitions, revision, { owners })));
    before = now;
  }
});
