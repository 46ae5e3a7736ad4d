-- Names of hosts are brought into one form, parts of them become columns, and forbidden ones are refused.
local RESERVED = { localhost = true, gateway = true, test = true }

local function check(label)
  if #label == 0 or #label > 63 then error("a label has 1 to 63 characters: " .. label, 0) end
  if not label:match("^[%w][%w%-]*$") or label:sub(-1) == "-" then error("not a label: " .. label, 0) end
end

if ACTION == "DELETE" then return true end
local full = strings.trim(OBJECT.fullname or ""):lower():gsub("%.$", "")
if full == "" then return false end

local labels = strings.split(full, ".")
for _, label in ipairs(labels) do check(label) end
if RESERVED[labels[1]] then error("reserved: " .. labels[1], 0) end

OBJECT.fullname = full
OBJECT.short = labels[1]
OBJECT.number = tonumber(labels[1]:match("(%d+)$"))
local domain = {}
for at = 2, #labels do domain[#domain + 1] = labels[at] end
OBJECT.domain = strings.join(domain, ".")
OBJECT.environment = full:match("%.dev%.") and "development" or "production"
