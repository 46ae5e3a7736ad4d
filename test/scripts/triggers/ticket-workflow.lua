-- A ticket goes through its states in their order only, and keeps who is to act and how it came here.
local NEXT = {
  new = { open = true, rejected = true },
  open = { waiting = true, solved = true },
  waiting = { open = true },
  solved = { closed = true, open = true },
  rejected = {},
  closed = {},
}

local function append(list, text)
  local all = {}
  for _, entry in ipairs(list or {}) do all[#all + 1] = entry end
  all[#all + 1] = text
  return all
end

if ACTION == "DELETE" then
  if OLD.state ~= "closed" and OLD.state ~= "rejected" then error("only closed tickets go: " .. OLD.name, 0) end
  return true
end

if ACTION == "INSERT" then
  OBJECT.state = "new"
  OBJECT.history = { "new" }
  OBJECT.priority = math.min(5, math.max(1, OBJECT.priority or 3))
  return true
end

if OBJECT.state ~= OLD.state then
  local allowed = NEXT[OLD.state] or {}
  if not allowed[OBJECT.state] then error("no way from " .. OLD.state .. " to " .. tostring(OBJECT.state), 0) end
  OBJECT.history = append(OLD.history, OBJECT.state)
  if OBJECT.state == "open" and OBJECT.owner == nil then OBJECT.owner = "desk" end
end
