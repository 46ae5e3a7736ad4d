import { AppError } from "../../../common/errors.ts";
import { SCRIPT_MESSAGE_MAX_CHARACTERS } from "../../../common/limits.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import type { Notification, Notifications } from "./types.ts";

/** Subjects about objects; each receiver sees only permitted parts. Only the platform sends to them. */
const OWN_SUBJECTS = new Set(["datachange", "deployment", "jobrun", "transfer"]);

/** Sends a frame of a user or a script. `AppError("invalid")` for a subject of the platform's own. */
export function sendFrame(
  notifications: Pick<Notifications, "publish">,
  principal: Principal,
  frame: Pick<Notification, "source" | "subject" | "title" | "msg">,
): void {
  requireSending(principal, frame.subject);
  if (frame.msg.length > SCRIPT_MESSAGE_MAX_CHARACTERS)
    throw new AppError("too_large", `A frame has at most ${SCRIPT_MESSAGE_MAX_CHARACTERS} characters.`, {
      details: { limit: "SCRIPT_MESSAGE_MAX_CHARACTERS" },
    });
  const { tenant, ospace } = principal;
  notifications.publish(tenant, { ...frame, keyspace: ospace, reply: "", about: undefined });
}

/** Throws `AppError("denied")` without the permission, `invalid` for a subject of the platform. */
export function requireSending(principal: Principal, subject: string): void {
  requirePermission(principal, "notifications:write");
  if (OWN_SUBJECTS.has(subject))
    throw new AppError("invalid", `Frames of ${subject} come from the platform: choose another subject.`);
}
