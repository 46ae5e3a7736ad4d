import type { Outcome } from "../runs/chronicle.ts";
import type { ObjectService } from "../../../controller/areas/objects/index.ts";
import {
  TARGETS,
  type Dice,
  someValue,
  type Subject,
  type Step,
  insertion,
  updating,
  linking,
  removal,
  looking,
  someStep,
} from "./race-steps.ts";

/** Sequences of steps that make up a history. */

/** Draws the steps of a history, each by one of the services. */
export type Plan = (dice: Dice, services: readonly ObjectService[], subject: Subject) => Step[];

/**
 * Kinds of histories: any operations; words that two columns share; an update that crosses the removal of its object
 * and the next insert.
 */
export const PLANS: readonly Plan[] = [
  (dice, services, subject) => {
    const first = insertion(services[0]!, subject, { a: 0, one: "disk" });
    return [
      first,
      ...Array.from({ length: 4 + Math.floor(dice.next() * 6) }, (_, at) =>
        someStep(dice, services, { ...subject, label: at + 1 }),
      ),
    ];
  },
  (dice, services, subject) => {
    const [x, y] = twoOf(dice, services);
    const exchange = [
      updating(x, subject, [{ column: "one", operation: "set", value: dice.of(["", "full"]) }]),
      updating(y, subject, [{ column: "two", operation: "set", value: "disk" }]),
    ];
    const between = updating(dice.of(services), subject, [{ column: "a", operation: "set", value: 5 }]);
    const [former, latter] = dice.next() < 0.5 ? exchange : exchange.reverse();
    return [insertion(dice.of(services), subject, { one: "disk" }), former!, between, latter!];
  },
  (dice, services, subject) => {
    const [x, y] = twoOf(dice, services);
    const [left, next] = dice.next() < 0.5 ? (["a", "knows"] as const) : (["knows", "m"] as const);
    const value = left === "knows" ? [TARGETS[0]] : 7;
    return [
      insertion(dice.of(services), subject, { b: "first" }),
      updating(x, subject, [{ column: left, operation: "set", value }]),
      removal(y, subject),
      looking(dice.of(services), subject),
      insertion(dice.of(services), subject, { [next]: someValue(dice, next, 9) }),
    ];
  },
];

/**
 * Edges to an object that cross its removal and the next insert. A removal that finds no object removes none of them.
 */
export const LINKED: Plan = (dice, services, subject) => {
  const removing = (by: ObjectService): Step => {
    const step = removal(by, subject);
    const run = async (): Promise<Outcome> => {
      const outcome = await step.run();
      return outcome.kind === "absent" ? { kind: "update", writes: new Map() } : outcome;
    };
    return { ...step, run };
  };
  const some = (): Step => {
    const by = dice.of(services);
    const kind = dice.next();
    if (kind < 0.5) return linking(by, subject, dice);
    return kind < 0.75 ? removing(by) : insertion(by, subject, { a: 1 });
  };
  const first = [
    insertion(dice.of(services), subject, { a: 0 }),
    linking(dice.of(services), subject, dice),
    removing(dice.of(services)),
  ];
  return [
    ...first,
    ...Array.from({ length: 1 + Math.floor(dice.next() * 5) }, some),
    insertion(dice.of(services), subject, { a: 2 }),
  ];
};

function twoOf(dice: Dice, services: readonly ObjectService[]): readonly [ObjectService, ObjectService] {
  const one = dice.of(services);
  return [one, services.length === 1 ? one : dice.of(services.filter((other) => other !== one))];
}
