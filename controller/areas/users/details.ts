import type { Details } from "./types.ts";

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

/** Member of `config` that names the zone of the user, for calendars in statements that name none. */
export const TIME_ZONE = "time_zone";
