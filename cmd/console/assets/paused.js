// Whether what moves is held. All that moves asks here.
let held = false;
const heard = [];
export const isHeld = () => held || document.hidden;
export const onChange = (f) => heard.push(f);
export const toggle = () => {
  held = !held;
  const button = document.querySelector("[data-pause]");
  if (button) button.textContent = held ? "Go on" : "Hold";
  for (const f of heard) f();
};
document.addEventListener("visibilitychange", () => { for (const f of heard) f(); });
