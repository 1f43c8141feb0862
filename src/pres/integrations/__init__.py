"""PRES on the models of other libraries; each module here is for one of them, and needs only that one."""
