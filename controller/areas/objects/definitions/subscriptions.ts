import { AppError } from "../../../../common/errors.ts";
import { CHANGE_SUBSCRIPTION_CLASSES_MAX, CHANGE_SUBSCRIPTIONS_MAX } from "../../../../common/limits.ts";
import type { SubscriptionDefinition } from "./definition.ts";
import type { Draft } from "./draft.ts";
import { checkSubscriptionName } from "./naming.ts";

export function covers({ classes }: SubscriptionDefinition, path: string): boolean {
  return classes.some((entry) => (entry.endsWith("/") ? `${path}/`.startsWith(entry) : path === entry));
}

export function putSubscription(draft: Draft, subscription: SubscriptionDefinition): void {
  checkSubscriptionName(subscription.name);
  const known = draft.subscription(subscription.name);
  if (known === undefined && draft.subscriptionCount >= CHANGE_SUBSCRIPTIONS_MAX)
    throw tooMany("CHANGE_SUBSCRIPTIONS_MAX", CHANGE_SUBSCRIPTIONS_MAX);
  if (subscription.classes.length > CHANGE_SUBSCRIPTION_CLASSES_MAX)
    throw tooMany("CHANGE_SUBSCRIPTION_CLASSES_MAX", CHANGE_SUBSCRIPTION_CLASSES_MAX);
  if (known?.classes.join() !== subscription.classes.join()) draft.putSubscription(subscription);
}

function tooMany(limit: string, count: number): AppError {
  return new AppError("too_large", `[Valid] At most ${count} subscriptions of changes, or classes of one.`, {
    details: { limit },
  });
}
