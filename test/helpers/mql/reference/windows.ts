import type { Operand, ValueNode, WindowItem } from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import { aggregate, order } from "../definitions.ts";
import type { Env } from "./rows.ts";
import { plain } from "./truth.ts";

/** The value of an expression for one row. */
export type ReadRow = (operand: Operand, env: Env) => Value | undefined;

/** By definition: the ordered rows with the same keys, and those before and after the row. */
export function over(
  { name, operands, partitionBy, orderBy }: WindowItem,
  { env, all, read }: { readonly env: Env; readonly all: readonly Env[]; readonly read: ReadRow },
): Value {
  const part = (one: Env): string => JSON.stringify(partitionBy.map((key) => read(key, one) ?? null));
  const compared = (left: Env, right: Env): number => {
    for (const { value, descending } of orderBy) {
      const result = order(read(value, left) ?? null, read(value, right) ?? null);
      if (result !== 0) return descending ? -result : result;
    }
    return 0;
  };
  const own = all.filter((one) => part(one) === part(env)).sort(compared);
  const [argument, further] = operands;
  const value = (one: Env | undefined): Value => (one && argument ? (read(argument, one) ?? null) : null);
  const distance = further ? Number(plain(further as ValueNode)) : 1;
  if (name === "row_number") return own.indexOf(env) + 1;
  if (name === "lag") return value(own[own.indexOf(env) - distance]);
  if (name === "lead") return value(own[own.indexOf(env) + distance]);
  const [time] = orderBy;
  if (name === "rate") return rate(own, env, { value, time: time && ((one) => read(time.value, one)) });
  const before = own.filter((one) => compared(one, env) <= 0);
  const known = before.map((one) => ({ value: value(one), ms: 0 })).filter((one) => one.value !== null);
  return name === "count" && !argument ? before.length : aggregate(name, known);
}

/** Growth per second since the previous row with a value. A smaller value means that the counter restarted at 0. */
function rate(
  own: readonly Env[],
  env: Env,
  of: { readonly value: (env: Env) => Value; readonly time: ((env: Env) => Value | undefined) | undefined },
): Value {
  const now = of.value(env);
  const before = own.slice(0, own.indexOf(env)).findLast((one) => of.value(one) !== null);
  if (now === null || !before || !of.time) return null;
  const seconds = (Number(of.time(env)) - Number(of.time(before))) / 1_000;
  const was = Number(of.value(before));
  return (Number(now) < was ? Number(now) : Number(now) - was) / seconds;
}
