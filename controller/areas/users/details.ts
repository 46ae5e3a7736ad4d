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
