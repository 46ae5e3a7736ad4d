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
 * A change whose condition or values contain other SELECTs. They are read before its first object is searched, so
 * before any object is changed. Undefined for a change without such SELECTs.
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
    // The answers may depend on any object, and the change depends on the answers.
    reads: [{ class: "/", subtree: true }],
    edits: sets ? () => [] : checked.edits,
    run: (context) => answering({ asks }, context, ({ run }) => run(context)),
    find: (context) => answering({ asks }, context, ({ find }) => find(context)),
    make() {
      throw new RangeError("a change is made with what its SELECTs answered");
    },
  };
}

/**
 * Reads the SELECTs and does the work with the change that results from their answers. The memory of the answers is
 * counted until the work is done.
 */
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
