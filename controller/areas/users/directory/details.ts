import { zoneNamed } from "../../../../common/calendar/zones.ts";
import { AppError } from "../../../../common/errors.ts";
import type { Details } from "../types.ts";

export const NO_DETAILS: Details = {
  firstname: "",
  lastname: "",
  gender: "",
  address: "",
  imaccount: "",
  remark: "",
  auth: "",
  email: [],
  mobile: [],
  telephone: [],
  status: 1,
  config: {},
};

/** Member of `config` with the user's time zone, for calendars in statements that name none. */
export const TIME_ZONE = "time_zone";

/**
 * `AppError("invalid")` for an unknown zone, because the user's statements would count days by it. An empty name is no
 * zone. The present value may stay, because clients send back values they have read.
 */
export function requireTimeZone(config: Details["config"] | undefined, present: Details["config"] = {}): void {
  const name = config?.[TIME_ZONE] ?? "";
  if (name === "" || name === present[TIME_ZONE] || zoneNamed(name)) return;
  throw new AppError("invalid", `config.${TIME_ZONE}: there is no time zone ${JSON.stringify(name)}.`, {
    details: { fields: ["config"] },
  });
}
