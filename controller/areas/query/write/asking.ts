import type { Delete, Select, Update } from "../../../../common/mql/index.ts";
import { PROCESS_MEMORY } from "../expressions/aggregates/memory.ts";
import { setsByAnswers } from "../plan/subselects.ts";
import type { Reading } from "../run/run.ts";
import { type SubAnswers, subSelects } from "../run/subselects.ts";
import type { AskedSelects, Change, WriteContext } from "./write.ts";

interface Binding<S> {
  readonly bind: (statement: S) => Change;
  readonly inner: (select: Select) => Reading;
}

/**
 * A change whose condition, or what it sets, asks other SELECTs. They are read before its first object is looked for, and
 * so before any is changed. Undefined for a change that asks none.
 */
export function askingChange<S extends Update | Delete>(statement: S, { bind, inner }: Binding<S>): Change | undefined {
  const selects = subSelects(statement, inner);
  if (!selects) return undefined;
  const checked = bind(selects.unanswered);
  const sets = setsByAnswers(statement);
  const asks: AskedSelects = {
    ...selects,
    isKept: sets || (checked.computed ?? []).length > 0,
    answered: (answers) => bind(selects.answered(answers)),
  };
  return {
    ...checked,
    asks,
    // The answers, and with them the meaning of the change, may follow from any object.
    reads: [{ class: "/", subtree: true }],
    edits: sets ? () => [] : checked.edits,
    run: (context) => answering({ asks }, context, ({ run }) => run(context)),
    find: (context) => answering({ asks }, context, ({ find }) => find(context)),
    make() {
      throw new RangeError("a change is made with what its SELECTs answered");
    },
  };
}

/** Does the work with the change as its SELECTs are answered now; what they answer is held until it is done. */
export async function answering<T>(
  { asks }: { readonly asks: AskedSelects },
  context: WriteContext,
  work: (answered: Change, answers: SubAnswers) => Promise<T>,
): Promise<T> {
  const memory = PROCESS_MEMORY.share(context.tenant);
  try {
    const answers = await asks.found(context, memory);
    return await work(asks.answered(answers), answers);
  } finally {
    memory.close();
  }
}
